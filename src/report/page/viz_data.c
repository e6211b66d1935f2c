/* viz_data.c - results as JSON for the script of the viz page. Long lists are base64 of
 * little-endian numbers; scores are exact 32-bit floats, so that the script ranks as the library
 * does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report/page/page.h"

#include <math.h>
#include <string.h>

enum { NO_PATCH = 0xffff, N_COLOURS = 256 };

/* ---- maps ---------------------------------------------------------------------------------- */

enum { MAX_MAPS = 2 * RENYI_VIZ_MAX_METRICS + RENYI_VIZ_MAX_ORDERS };

/* All maps of an image, each metric once: the metrics, then the norms that are not among them. The
 * indices are the same for all images. */
typedef struct viz_maps {
    uint32_t n;
    struct {
        uint32_t is_norm, at; /* index in the result's norms or metrics */
    } of[MAX_MAPS];
    uint32_t norms[MAX_MAPS]; /* [n_norms] their indices among the maps */
} viz_maps;

static viz_maps list_maps(const renyi_viz_result *r)
{
    viz_maps maps = {0};
    for (uint32_t i = 0; i < r->n_metrics; i++) maps.of[maps.n++].at = i;
    for (uint32_t i = 0; i < r->n_norms; i++) {
        uint32_t at = 0;
        while (at < r->n_metrics && strcmp(r->metrics[at].name, r->norms[i].name) != 0) at++;
        maps.norms[i] = at < r->n_metrics ? at : maps.n;
        if (at < r->n_metrics) continue;
        maps.of[maps.n].is_norm = 1;
        maps.of[maps.n++].at = i;
    }
    return maps;
}

static const renyi_viz_metric *map_at(const renyi_viz_result *r, const viz_maps *maps, uint32_t i)
{
    return maps->of[i].is_norm ? &r->norms[maps->of[i].at] : &r->metrics[maps->of[i].at];
}

/* ---- pieces of JSON ------------------------------------------------------------------------ */

static void put_string(ry_buffer *s, const char *name, const char *text)
{
    ry_buffer_text(s, "\"");
    ry_buffer_text(s, name);
    ry_buffer_text(s, "\":\"");
    ry_put_json(s, text);
    ry_buffer_text(s, "\"");
}

static void put_value(ry_buffer *s, double v, int decimals)
{
    if (isfinite(v))
        ry_put_number(s, v, decimals);
    else
        ry_buffer_text(s, "null");
}

static void put_list(ry_buffer *s, const char *name, const uint32_t *list, uint32_t n)
{
    ry_buffer_text(s, ",\"");
    ry_buffer_text(s, name);
    ry_buffer_text(s, "\":[");
    for (uint32_t i = 0; i < n; i++) ry_putf(s, i ? ",%u" : "%u", list[i]);
    ry_buffer_text(s, "]");
}

static void put_floats(ry_buffer *s, const float *v, uint32_t n)
{
    ry_pack b = ry_pack_to(s);
    ry_buffer_text(s, "\"");
    for (uint32_t i = 0; i < n; i++) ry_pack_f32(&b, v[i]);
    ry_pack_end(&b);
    ry_buffer_text(s, "\"");
}

static void put_answer(ry_buffer *s, const renyi_viz_answer *a)
{
    ry_buffer_text(s, "\"top\":[");
    for (uint32_t i = 0; i < a->n_top; i++) {
        ry_putf(s, i ? ",[%u,\"" : "[%u,\"", a->top[i].index);
        ry_put_json(s, a->top[i].name);
        ry_buffer_text(s, "\",");
        put_value(s, (double)a->top[i].probability, 6);
        ry_buffer_text(s, "]");
    }
    ry_buffer_text(s, "],\"total\":");
    put_value(s, a->macs, 0);
    ry_buffer_text(s, ",\"ms\":");
    put_value(s, a->ms, 2);
}

/* ---- what all images share ----------------------------------------------------------------- */

static void put_colours(ry_buffer *s, const char *name, renyi_colours map)
{
    static const char hex[] = "0123456789abcdef";
    ry_buffer_text(s, "\"");
    ry_buffer_text(s, name);
    ry_buffer_text(s, "\":\"");
    for (int i = 0; i < N_COLOURS; i++) {
        uint8_t rgb[3];
        char digits[6];
        renyi_colour(map, i / (double)(N_COLOURS - 1), rgb);
        for (int c = 0; c < 3; c++) {
            digits[2 * c] = hex[rgb[c] >> 4];
            digits[2 * c + 1] = hex[rgb[c] & 15];
        }
        ry_buffer_put(s, digits, sizeof digits);
    }
    ry_buffer_text(s, "\"");
}

static void put_map_names(ry_buffer *s, const renyi_viz_result *r, const viz_maps *maps)
{
    ry_buffer_text(s, ",\"maps\":[");
    for (uint32_t i = 0; i < maps->n; i++) {
        const renyi_viz_metric *m = map_at(r, maps, i);
        ry_buffer_text(s, i ? ",{" : "{");
        put_string(s, "name", m->name);
        ry_buffer_text(s, ",");
        put_string(s, "label", m->label);
        ry_buffer_text(s, ",\"order\":");
        if (isinf(m->order))
            ry_buffer_text(s, "\"inf\"");
        else
            put_value(s, m->order, m->order == floor(m->order) ? 0 : 2);
        ry_buffer_text(s, "}");
    }
    ry_buffer_text(s, "],\"cards\":[");
    for (uint32_t i = 0; i < r->n_metrics; i++) ry_putf(s, i ? ",%u" : "%u", i);
    ry_buffer_text(s, "]");
    put_list(s, "norms", maps->norms, r->n_norms);
}

static const renyi_viz_row *row_at(const renyi_viz_result *r, uint32_t i)
{
    return i < r->n_rows ? &r->rows[i] : &r->sweep[i - r->n_rows];
}

/* Index of the map that a row ranks by; -1 = the row is a policy of its own. */
static int map_of(const renyi_viz_row *row, const viz_maps *maps)
{
    if (row->metric != RENYI_NONE) return (int)row->metric;
    return row->norm != RENYI_NONE ? (int)maps->norms[row->norm] : -1;
}

static void put_row_names(ry_buffer *s, const renyi_viz_result *r, const viz_maps *maps)
{
    ry_buffer_text(s, ",\"rows\":[");
    for (uint32_t i = 0; i < r->n_rows + r->n_sweep; i++) {
        const renyi_viz_row *row = row_at(r, i);
        ry_buffer_text(s, i ? ",\n{" : "\n{");
        put_string(s, "policy", row->policy);
        ry_buffer_text(s, ",");
        put_string(s, "label", row->label);
        ry_buffer_text(s, ",\"map\":");
        put_value(s, map_of(row, maps), 0);
        ry_buffer_text(s, ",\"keep\":");
        put_value(s, row->keep, 4);
        ry_putf(s, ",\"merges\":%u,\"adaptive\":%u}", row->merges != 0, row->adaptive != 0);
    }
    ry_buffer_text(s, "]");
}

static void put_shared(ry_buffer *s, const renyi_viz_result *r, const viz_maps *maps)
{
    put_string(s, "model", r->model);
    ry_putf(s, ",\"grid\":%u,\"blocks\":%u,\"colours\":{", r->photo.grid, r->n_blocks);
    put_colours(s, "even", RENYI_COLOURS_EVEN);
    ry_buffer_text(s, ",\n");
    put_colours(s, "paper", RENYI_COLOURS_RED_BLUE);
    ry_buffer_text(s, "}\n");
    put_list(s, "layers", r->layers, r->n_layers);
    put_map_names(s, r, maps);
    put_list(s, "kept", r->kept, r->n_keeps);
    ry_buffer_text(s, ",\"keeps\":[");
    for (uint32_t i = 0; i < r->n_keeps; i++) {
        if (i) ry_buffer_text(s, ",");
        put_value(s, r->keeps[i], 4);
    }
    ry_buffer_text(s, "]");
    put_row_names(s, r, maps);
}

/* ---- one image ----------------------------------------------------------------------------- */

/* scores: [n_maps, n_layers, n_patches]; clip: [n_maps, n_layers, 2]. */
static void put_scores(ry_buffer *s, const renyi_viz_result *r, const viz_maps *maps)
{
    ry_pack b = ry_pack_to(s);
    ry_buffer_text(s, ",\"scores\":\"");
    for (uint32_t m = 0; m < maps->n; m++)
        for (uint32_t k = 0; k < r->n_layers; k++)
            for (uint32_t p = 0; p < r->n_patches; p++)
                ry_pack_f32(&b, map_at(r, maps, m)->maps[k].score[p]);
    ry_pack_end(&b);
    ry_buffer_text(s, "\",\"clip\":\"");
    for (uint32_t m = 0; m < maps->n; m++)
        for (uint32_t k = 0; k < r->n_layers; k++) {
            const renyi_viz_map *map = &map_at(r, maps, m)->maps[k];
            ry_pack_f32(&b, map->low);
            ry_pack_f32(&b, map->high);
        }
    ry_pack_end(&b);
    ry_buffer_text(s, "\"");
}

/* Where each patch was dropped: 2 x layer, + 1 if it went into a fused token. A dropped patch never
 * comes back, so one list is enough for all layers. */
static void put_gone(ry_buffer *s, const renyi_viz_result *r, const renyi_viz_row *row)
{
    const renyi_viz_step *last = &row->steps[r->n_layers - 1];
    ry_pack b = ry_pack_to(s);
    ry_buffer_text(s, "\"gone\":\"");
    for (uint32_t p = 0; p < r->n_patches; p++) {
        const uint32_t at = last->gone_at[p];
        const uint32_t code = 2 * at + (last->state[p] == RENYI_VIZ_FUSED);
        ry_pack_u16(&b, at == RENYI_NONE || code > NO_PATCH ? NO_PATCH : (uint16_t)code);
    }
    ry_pack_end(&b);
    ry_buffer_text(s, "\"");
}

/* The groups of each layer, or 0 if they are the same as in the layer before. */
static void put_groups(ry_buffer *s, const renyi_viz_result *r, const renyi_viz_row *row)
{
    const uint32_t n = r->n_patches;
    ry_buffer_text(s, ",\"group\":[");
    for (uint32_t k = 0; k < r->n_layers; k++) {
        const uint32_t *group = row->steps[k].group;
        if (k) ry_buffer_text(s, ",");
        if (k && !memcmp(group, row->steps[k - 1].group, n * sizeof *group)) {
            ry_buffer_text(s, "0");
            continue;
        }
        ry_pack b = ry_pack_to(s);
        ry_buffer_text(s, "\"");
        for (uint32_t p = 0; p < n; p++)
            ry_pack_u16(&b, group[p] < n ? (uint16_t)group[p] : NO_PATCH);
        ry_pack_end(&b);
        ry_buffer_text(s, "\"");
    }
    ry_buffer_text(s, "]");
}

static void put_rescued(ry_buffer *s, const renyi_viz_result *r, const renyi_viz_row *row)
{
    uint32_t any = 0;
    for (uint32_t k = 0; k < r->n_layers; k++) any += row->steps[k].n_rescued;
    if (!any) return;
    ry_buffer_text(s, ",\"rescued\":[");
    for (uint32_t k = 0; k < r->n_layers; k++) {
        int n = 0;
        ry_buffer_text(s, k ? ",[" : "[");
        for (uint32_t p = 0; p < r->n_patches; p++)
            if (row->steps[k].rescued[p]) ry_putf(s, n++ ? ",%u" : "%u", p);
        ry_buffer_text(s, "]");
    }
    ry_buffer_text(s, "]");
}

/* The scores that the cuts of a policy ranked by. The row of a metric has its map instead. */
static void put_cut_scores(ry_buffer *s, const renyi_viz_result *r, const renyi_viz_row *row)
{
    ry_buffer_text(s, ",\"scores\":[");
    for (uint32_t k = 0; k < r->n_layers; k++) {
        if (k) ry_buffer_text(s, ",");
        if (row->steps[k].is_cut)
            put_floats(s, row->steps[k].score, r->n_patches);
        else
            ry_buffer_text(s, "0");
    }
    ry_buffer_text(s, "]");
}

static void put_row(ry_buffer *s, const renyi_viz_result *r, const renyi_viz_row *row)
{
    ry_buffer_text(s, "\n{");
    put_gone(s, r, row);
    if (row->merges) put_groups(s, r, row);
    put_rescued(s, r, row);
    if (row->metric == RENYI_NONE && row->norm == RENYI_NONE) put_cut_scores(s, r, row);
    ry_buffer_text(s, ",\"cut\":[");
    for (uint32_t k = 0; k < r->n_layers; k++)
        ry_putf(s, k ? ",%u" : "%u", row->steps[k].is_cut != 0);
    ry_buffer_text(s, "],\"tokens\":[");
    for (uint32_t k = 0; k < r->n_layers; k++) ry_putf(s, k ? ",%u" : "%u", row->steps[k].n_tokens);
    ry_buffer_text(s, "],\"macs\":[");
    for (uint32_t k = 0; k < r->n_layers; k++) {
        if (k) ry_buffer_text(s, ",");
        put_value(s, row->steps[k].macs, 0);
    }
    ry_buffer_text(s, "],");
    put_answer(s, &row->answer);
    ry_buffer_text(s, "}");
}

static void put_heads(ry_buffer *s, const char *name, const renyi_viz_result *r, int is_column)
{
    const renyi_viz_attention *a = r->attention;
    ry_pack b = ry_pack_to(s);
    ry_buffer_text(s, name);
    for (uint32_t k = 0; k < r->n_layers; k++) {
        const float *v = is_column ? a->layers[k].column : a->layers[k].row;
        for (size_t i = 0; i < (size_t)a->n_heads * a->n_tokens; i++) ry_pack_f32(&b, v[i]);
    }
    ry_pack_end(&b);
    ry_buffer_text(s, "\"");
}

static void put_attention(ry_buffer *s, const renyi_viz_result *r)
{
    const renyi_viz_attention *a = r->attention;
    ry_putf(s, ",\"attention\":{\"heads\":%u,\"tokens\":%u,\"prefix\":%u,\"query\":", a->n_heads,
            a->n_tokens, a->n_prefix);
    put_value(s, a->query, 0);
    ry_putf(s, ",\"token\":%u", (uint32_t)a->token);
    put_heads(s, ",\"rows\":\"", r, 0);
    put_heads(s, ",\"columns\":\"", r, 1);
    ry_buffer_text(s, "}");
}

static void put_image(ry_buffer *s, const renyi_viz_result *r, const viz_maps *maps)
{
    ry_buffer_text(s, "{");
    put_string(s, "name", r->photo.name);
    put_scores(s, r, maps);
    ry_buffer_text(s, ",\"dense\":{");
    put_answer(s, &r->dense);
    ry_buffer_text(s, "},\"rows\":[");
    for (uint32_t i = 0; i < r->n_rows + r->n_sweep; i++) {
        if (i) ry_buffer_text(s, ",");
        put_row(s, r, row_at(r, i));
    }
    ry_buffer_text(s, "]");
    if (r->attention) put_attention(s, r);
    ry_buffer_text(s, "}");
}

void ry_put_viz_data(ry_buffer *s, const renyi_viz_page *page)
{
    const viz_maps maps = list_maps(page->photos[0]);
    ry_buffer_text(s, "<script type=\"application/json\" id=\"data\">{");
    put_shared(s, page->photos[0], &maps);
    ry_buffer_text(s, ",\n\"photos\":[");
    for (uint32_t i = 0; i < page->n_photos; i++) {
        if (i) ry_buffer_text(s, ",\n");
        put_image(s, page->photos[i], &maps);
    }
    ry_buffer_text(s, "]}</script>\n");
}
