/* fuzz_gallery.c - any bytes as the index of a gallery.
 * SPDX-License-Identifier: Apache-2.0 */
#include "eval/gallery/gallery_index.h"
#include "formats/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was believed is fit for use. */
static void use(const renyi_gallery *g)
{
    renyi_gallery_info info;
    renyi_hit hits[3];
    size_t n;
    renyi_gallery_get_info(g, &info);
    for (size_t i = 0; i < info.n_photos; i++) {
        renyi_gallery_photo p;
        renyi_gallery_get_photo(g, i, &p);
        if (p.file[0] == '/' || strstr(p.file, "../")) abort();
        for (uint32_t k = 0; k < info.dim; k++)
            if (!(fabsf(p.row[k]) <= 1.001f)) abort();
        if (renyi_gallery_search(g, p.row, 3, hits, &n, NULL) || !n || n > 3) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    renyi_gallery *g;
    ry_tensors *set = NULL;
    renyi_error err = {0};
    if (renyi_gallery_new(&g, NULL, &err)) abort();
    if (!ry_safetensors_parse(&set, data, size, "it", NULL, NULL, &err) &&
        !ry_gallery_take(g, set, "it", &err))
        use(g);
    else if (!err.message[0])
        abort();
    ry_tensors_free(set);
    renyi_gallery_free(g);
    return 0;
}
