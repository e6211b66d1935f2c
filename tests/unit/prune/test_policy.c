/* test_policy.c - tests the policy grammar: what each text means, its full form, and refusals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/decimal.h"
#include "base/rng.h"
#include "prune/policy/cascade.h"
#include "prune/policy/policy_keys.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test.h"

#define COUNT(x) (sizeof(x) / sizeof *(x))

static ry_policy parse_text(const char *text)
{
    ry_policy p;
    renyi_error err = {0};
    if (ry_policy_parse(&p, text, &err)) fail_msg("'%s' was refused: %s", text, err.message);
    return p;
}

/* The text in full, every key written out; parsing it again must give the same struct. */
static const char *full_text(const char *text, char out[RY_MAX_POLICY_TEXT])
{
    const ry_policy p = parse_text(text);
    ry_policy_print(out, &p);
    const ry_policy q = parse_text(out);
    if (memcmp(&p, &q, sizeof p)) fail_msg("'%s' is printed as '%s', another policy", text, out);
    return out;
}

#define COL_KEYS " heads=mean class_row=yes diagonal=yes"
static const struct {
    const char *text, *full;
} meanings[] = {
    {"none", "none"},
    {" none\t\n", "none"},
    {"naive", "naive p=8 layers=0-5 metric=col n=4" COL_KEYS " reduce=drop at=mid order=score"},
    {"naive metric=correct", "naive p=8 layers=0-5 metric=correct n=4 c=0.4 rounding=code" COL_KEYS
                             " reduce=drop at=mid order=score"},
    {"naive p=16 layers=early metric=cls",
     "naive p=16 layers=0-5 metric=cls reduce=drop at=mid order=score"},
    {"naive layers=all p=0 n=inf at=end",
     "naive p=0 layers=all metric=col n=inf" COL_KEYS " reduce=drop at=end order=score"},
    {"naive merge order=position n=2.5 heads=each class_row=no diagonal=no",
     "naive p=8 layers=0-5 metric=col n=2.5 heads=each class_row=no diagonal=no reduce=merge "
     "at=mid order=position"},
    {"naive metric=random seed=18446744073709551615",
     "naive p=8 layers=0-5 metric=random seed=18446744073709551615 reduce=drop at=mid order=score"},
    {"naive metric=shannon",
     "naive p=8 layers=0-5 metric=shannon" COL_KEYS " reduce=drop at=mid order=score"},
    {"evit", "evit keep=0.7 layers=3,6,9 metric=cls reduce=fuse weights=cls at=mid order=score"},
    {"evit metric=correct",
     "evit keep=0.7 layers=3,6,9 metric=correct n=2 c=0.8 rounding=code" COL_KEYS
     " reduce=fuse weights=cls at=mid order=score"},
    {"evit metric=col", "evit keep=0.7 layers=3,6,9 metric=col n=2" COL_KEYS
                        " reduce=fuse weights=auto at=mid order=score"},
    {"evit metric=random",
     "evit keep=0.7 layers=3,6,9 metric=random seed=0 reduce=fuse weights=score at=mid order=score"},
    {"evit reduce=drop,merge,fuse metric=renyi n=3 weights=score",
     "evit keep=0.7 layers=3,6,9 metric=renyi n=3" COL_KEYS
     " reduce=drop,merge,fuse weights=score at=mid order=score"},
    {"evit layers=(9, 3, 6) keep=0.9,.5,0.7 drop",
     "evit keep=0.5,0.7,0.9 layers=3,6,9 metric=cls reduce=drop at=mid order=score"},
    {"evit layers=( 3 ,6 ) tokens=100",
     "evit tokens=100 layers=3,6 metric=cls reduce=fuse weights=cls at=mid order=score"},
    {"evit layers=0-2,5,7-8 keep=1.000 drop",
     "evit keep=1 layers=0-2,5,7,8 metric=cls reduce=drop at=mid order=score"},
    {"mosaic", "mosaic keep=0.7 layers=0,3,6"},
    {"mosaic p=16 layers=0-5", "mosaic p=16 layers=0-5"},
    {"mosaic layers=2,3,4,7/12", "mosaic keep=0.7 layers=2-4,7/12"},
    {"mosaic alpha=0.5 omega=0 beta=1", "mosaic keep=0.7 layers=0,3,6"},
    {"mosaic omega=.75 layers=2", "mosaic keep=0.7 layers=2 alpha=0.5 omega=0.75 beta=1"},
    {"mosaic length=mean layers=2", "mosaic keep=0.7 layers=2"},
    {"mosaic length=max layers=2", "mosaic keep=0.7 layers=2 length=max"},
    {"mosaic memory=0 layers=2", "mosaic keep=0.7 layers=2"},
    {"mosaic memory=.5 layers=2", "mosaic keep=0.7 layers=2 memory=0.5"},
    {"mosaic col=0 temperature=1 likeness=0 layers=2", "mosaic keep=0.7 layers=2"},
    {"mosaic likeness=.6 temperature=1.05 col=.2 layers=2",
     "mosaic keep=0.7 layers=2 col=0.2 temperature=1.05 likeness=0.6"},
    {"mosaic keep=0.82,0.82,0.76 layers=2-4 beta=0.9 omega=0.75 alpha=1",
     "mosaic keep=0.82,0.82,0.76 layers=2-4 alpha=1 omega=0.75 beta=0.9"},
    {"mosaic tokens=140,100,70", "mosaic tokens=140,100,70 layers=0,3,6"},
    {"mosaic keep=0.30000000000000004", "mosaic keep=0.30000000000000004 layers=0,3,6"},
    {"tome", "tome r=13 inflection=0 layers=all"},
    {"tome r=16 inflection=-0.50", "tome r=16 inflection=-0.5 layers=all"},
    {"tome r=16,12,8", "tome r=16,12,8 layers=all"},
    {"tome r=8,8 layers=3,6", "tome r=8 inflection=0 layers=3,6"},
    {"ats", "ats keep=0.7 layers=3,6,9 levels=budget"},
    {"ats tokens=100 layers=3", "ats tokens=100 layers=3 levels=budget"},
    {"ats keep=1 layers=3-11 levels=196", "ats keep=1 layers=3-11 levels=196"},
    {"tca", "tca drop=0.1 layers=3,6,9 metric=cls start=best"},
    {"tca metric=col start=7 drop=.035,0.1 layers=0,3",
     "tca drop=0.035,0.1 layers=0,3 metric=col n=4 start=7"},
    {"prumerge", "prumerge tokens=192 plus=no metric=cls neighbours=32"},
    {"prumerge adaptive plus metric=col n=2",
     "prumerge tokens=adaptive plus=yes metric=col n=2 neighbours=32"},
    {"prumerge keep=0.5 metric=correct neighbours=0",
     "prumerge keep=0.5 plus=no metric=correct n=4 c=0.2 neighbours=0"},
    {"vispruner", "vispruner tokens=192 important=0.5 metric=cls round=8 residual=score"},
    {"vispruner metric=correct tokens=256 c=0.8",
     "vispruner tokens=256 important=0.5 metric=correct n=4 c=0.8 round=8 residual=position"},
    {"vispruner metric=correct residual=score important=1 keep=1 round=1",
     "vispruner keep=1 important=1 metric=correct n=4 c=0.2 round=1 residual=score"},
    {"visionzip", "visionzip tokens=192 contextual=0.15625 class_token=yes metric=cls"},
    {"visionzip keep=0.5 contextual=1 class_token=no metric=correct",
     "visionzip keep=0.5 contextual=1 class_token=no metric=correct n=4 c=0.2"},
    {"divprune tokens=7", "divprune tokens=7"},
    {"hiprune", "hiprune tokens=192 anchors=0.1 block=8 metric=col n=1"},
    {"hiprune metric=cls keep=1 block=0 anchors=1", "hiprune keep=1 anchors=1 block=0 metric=cls"},
    {"mosaic-behind", "mosaic-behind tokens=192 alpha=1 omega=1 length=max metric=cls"},
    {"mosaic-behind alpha=0.5 omega=0 length=mean metric=col n=2 tokens=3",
     "mosaic-behind tokens=3 alpha=0.5 omega=0 length=mean metric=col n=2"},
    {"cdpruner", "cdpruner tokens=192 metric=text"},
    {"cdpruner tokens=9 metric=col", "cdpruner tokens=9 metric=col n=4"},
    {"random", "random tokens=192 seed=0"},
    {"random seed=18446744073709551615 keep=.5", "random keep=0.5 seed=18446744073709551615"},
    {"uniform tokens=64", "uniform tokens=64"},
    {"pool", "pool tokens=192"},
    {"downsample keep=1", "downsample keep=1"},
    {"prumerge budget=tile newlines=yes", "prumerge tokens=192 plus=no metric=cls neighbours=32"},
    {"vispruner tokens=640 budget=image newlines=no",
     "vispruner tokens=640 important=0.5 metric=cls round=8 residual=score budget=image "
     "newlines=no"},
    {"paper:prumerge tokens=256", "prumerge tokens=256 plus=no metric=cls neighbours=32"},
    {"paper:prumerge-ours", "prumerge tokens=192 plus=no metric=col n=4 neighbours=32"},
    {"paper:vispruner", "vispruner tokens=192 important=0.5 metric=cls round=8 residual=score"},
    {"paper:vispruner-ours tokens=256",
     "vispruner tokens=256 important=0.5 metric=correct n=4 c=0.2 round=8 residual=position"},
    {"paper:tca-ours layers=(0, 3, 6)", "tca drop=0.1 layers=0,3,6 metric=col n=4 start=1"},
    {"half", "mosaic keep=0.77 layers=2-9/12 alpha=1 omega=1 beta=0.8 memory=0.5 length=max "
             "col=0.2 temperature=1.05"},
    {"fast layers=3 p=9", "mosaic p=9 layers=3 alpha=1 omega=1 beta=0.8 memory=0.5 length=max "
                          "col=0.2 temperature=1.05"},
    {"paper:evit-ours keep=0.8",
     "evit keep=0.8 layers=3,6,9 metric=correct n=2 c=0.8 rounding=code" COL_KEYS
     " reduce=fuse weights=cls at=mid order=score"},
    {"paper:evit-ours metric=cls drop", /* metric=cls ignores the n and c of the preset */
     "evit keep=0.7 layers=3,6,9 metric=cls reduce=drop at=mid order=score"},
};

static void test_meanings(void **state)
{
    (void)state;
    char out[RY_MAX_POLICY_TEXT];
    for (size_t i = 0; i < COUNT(meanings); i++)
        assert_string_equal(full_text(meanings[i].text, out), meanings[i].full);
}

/* ---- refusals: the offset of the error, and what the message must contain -------------------- */

static const struct {
    const char *text;
    int offset;
    const char *says;
} refusals[] = {
    {"", 0,
     "begins with its rule (none, naive, evit, mosaic, tome, ats, tca, fastv, pyramiddrop, dart, "
     "sparsevlm, prumerge, vispruner, visionzip, divprune, "},
    {"   ", 3, "begins with its rule"},
    {"keep=0.7", 0, "begins with its rule"},
    {"evitt", 0, "unknown rule 'evitt' (did you mean evit?)"},
    {"EVIT keep=0.7", 0, "(did you mean evit?)"},
    {"col", 0, "'col' is a metric, not a rule; did you mean evit metric=col?"},
    {"cls keep=0.7", 0, "did you mean evit metric=cls?"},
    {"correct", 0, "did you mean evit metric=correct?"},
    {"shannon", 0, "did you mean evit metric=shannon?"},
    {"renyi", 0, "did you mean evit metric=renyi?"},
    {"shannon", 0, "did you mean evit metric=shannon?"},
    {"colv", 0, "did you mean evit metric=colv?"},
    {"zzz", 0, "unknown rule 'zzz'; rules are none, naive"},
    {"paper:evit-our", 0, "(did you mean paper:evit-ours?)"},
    {"none p=3", 5, "the rule none takes no words"},
    {"prumerge layers=3", 9, "prumerge takes no layers; it takes keep, tokens, plus, metric"},
    {"prumerge tokens=0", 16, "or adaptive"},
    {"prumerge tokens=3,4", 16, "tokens=3,4"},
    {"prumerge adaptive tokens=4", 18, "tokens is given twice"},
    {"prumerge plus keep", 14, "'keep' needs a value"},
    {"prumerge metric=random", 16, "prumerge ranks by metric=cls, metric=col or metric=correct"},
    {"prumerge n=2", 9, "n goes with metric=col"},
    {"random metric=cls", 7, "random takes no metric; it takes keep, tokens, seed"},
    {"random seed=-1", 12, "seed is a whole number from 0 to"},
    {"uniform seed=1", 8, "uniform takes no seed"},
    {"pool tokens=0", 12, "1 to 999999"},
    {"downsample tokens=3,4", 18, "tokens=3,4"},
    {"divprune metric=col", 9, "divprune takes no metric"},
    {"hiprune block=x", 14, "the block whose attention finds the anchors"},
    {"hiprune anchors=2", 16, "from 0 to 1"},
    {"mosaic-behind metric=correct", 21, "use metric=cls or metric=col"},
    {"mosaic-behind layers=3", 14, "mosaic-behind takes no layers"},
    {"cdpruner metric=correct", 16, "use metric=cls or metric=col"},
    {"visionzip metric=text", 17, "visionzip ranks by metric=cls, metric=col or metric=correct"},
    {"naive metric=text", 13, "it is of the rule cdpruner"},
    {"evit metric=text", 12, "it is of the rule cdpruner"},
    {"visionzip contextual=1.1", 21, "from 0 to 1"},
    {"visionzip metric=random", 17, "visionzip ranks by metric=cls, metric=col or metric=correct"},
    {"visionzip class_token=2", 22, "class_token is one of yes, no"},
    {"vispruner adaptive", 10, "unknown word 'adaptive'"},
    {"vispruner tokens=adaptive", 17, "tokens=adaptive"},
    {"vispruner important=2", 20, "from 0 to 1"},
    {"vispruner round=0", 16, "1 to 999999"},
    {"vispruner residual=place", 19, "residual is one of score, position, auto"},
    {"evit kep=0.7", 5, "unknown word 'kep' (did you mean keep?); evit takes keep, tokens"},
    {"evit frobnicate", 5, "unknown word 'frobnicate'; evit takes"},
    {"evit =3", 5, "unknown word ''"},
    {"evit keep", 5, "'keep' needs a value: keep=..."},
    {"evit keep=", 10, "keep= has no value"},
    {"naive keep=0.7", 6, "naive takes no keep; it takes p, layers"},
    {"evit p=3", 5, "evit takes no p; it takes keep, tokens"},
    {"mosaic metric=col", 7, "mosaic takes no metric; it takes keep, p, tokens, layers"},
    {"mosaic layers=3/", 14, "layers is a list of blocks"},
    {"mosaic layers=3/0", 14, "layers is a list of blocks"},
    {"mosaic layers=3,4/4", 14, "a model with 4 blocks has no block 4"},
    {"mosaic layers=/12", 14, "has an empty place"},
    {"mosaic layers=3/12,4", 14, "layers is a list of blocks"},
    {"mosaic alpha=4.1", 13, "alpha is the power of attention in the choice"},
    {"mosaic memory=1.5", 14, "memory is the share of earlier cuts"},
    {"evit memory=0.5", 5, "memory"},
    {"mosaic col=1.5", 11, "col is the share of Col-L2 beside class attention"},
    {"mosaic temperature=0", 19, "temperature is what divides the logits of attention"},
    {"mosaic likeness=-0.5", 16, "likeness is the cosine above which a patch may go"},
    {"ats likeness=0.5", 4, "ats takes no likeness"},
    {"mosaic omega=-1", 13, "omega is the power of attention per patch"},
    {"mosaic beta=inf", 12, "beta is the factor of log(size)"},
    {"evit alpha=1", 5, "evit takes no alpha"},
    {"mosaic keep=0.7,0.8 layers=2-4", 12, "keep has 2 values for 3 layers"},
    {"mosaic fuse", 7, "unknown word 'fuse'; mosaic takes"},
    {"tome keep=0.7", 5, "tome takes no keep; it takes r, inflection, layers"},
    {"ats p=3", 4, "ats takes no p; it takes keep, tokens, layers, levels"},
    {"ats levels=0", 11, "levels is budget (as many as patches may stay), or a number from 1"},
    {"ats levels=all", 11, "196 as published"},
    {"tome levels=196", 5, "tome takes no levels"},
    {"tca keep=0.7", 4, "tca takes no keep; it takes drop, layers, metric, n, start"},
    {"tca drop", 4, "'drop' needs a value"},
    {"evit drop=0.1", 5, "evit takes no drop"},
    /* contradictions */
    {"tca n=4", 4, "n goes with metric=col"},
    {"tca metric=correct", 11, "tca ranks by metric=cls or metric=col"},
    {"tca drop=0.1 drop=0.2", 13, "drop is given twice"},
    {"evit keep=0.7 keep=0.7", 14, "keep is given twice"},
    {"evit layers=3 layers=6", 14, "layers is given twice, as '3' and as '6'"},
    {"evit fuse reduce=merge", 10, "reduce is given twice, as 'fuse' and as 'merge'"},
    {"mosaic keep=0.7 p=3", 16, "keep and p exclude each other"},
    {"evit tokens=30 keep=0.7", 15, "tokens and keep exclude each other"},
    {"fast p=3 tokens=4", 9, "p and tokens exclude each other"},
    {"evit n=2", 5, "n goes with metric=col, correct, renyi, colv, not with metric=cls"},
    {"naive metric=random n=4", 20, "not with metric=random"},
    {"naive metric=shannon n=1", 21, "not with metric=shannon"},
    {"naive c=0.4", 6, "c goes with metric=correct, not with metric=col"},
    {"naive rounding=paper", 6, "rounding goes with metric=correct"},
    {"naive seed=3", 6, "seed goes with metric=random, not with metric=col"},
    {"evit heads=each", 5, "heads goes with metric=col, correct, renyi, shannon, colv"},
    {"evit class_row=no", 5, "class_row goes with"},
    {"evit diagonal=no", 5, "diagonal goes with"},
    {"naive weights=score", 6, "weights are those of a fused token"},
    {"naive p=1 fuse", 8, "removes one token and adds one"},
    {"paper:evit-ours metric=cls c=0.8", 27, "c goes with metric=correct"},
    {"tome r=4,5 inflection=1", 22, "inflection bends one r"},
    /* ranges */
    {"evit keep=0", 10, "above 0 and at most 1"},
    {"evit keep=1.01", 10, "above 0 and at most 1"},
    {"evit keep=-0.5", 10, "above 0 and at most 1"},
    {"evit keep=nan", 10, "keep=nan: keep is the share of patches that stay"},
    {"evit keep=0x1p-1", 10, "keep=0x1p-1"},
    {"evit keep=7e-1", 10, "a plain decimal"},
    {"evit keep=0,7", 10, "keep has 2 values for 3 layers"},
    {"evit keep=0,7,8", 10, "keep=0: "},
    {"evit keep=70%", 10, "keep=70%"},
    {"evit tokens=0", 12, "tokens is the number of patches that stay, 1 to 999999"},
    {"evit tokens=0.7", 12, "tokens is the number of patches"},
    {"naive p=-1", 8, "p is the number of patches removed"},
    {"naive p=+1", 8, "p is the number"},
    {"naive p=1000000", 8, "0 to 999999"},
    {"naive p=99999999999999999999999", 8, "0 to 999999"},
    {"naive n=0.999", 8, "n=0.999: n is a plain decimal of at least 1, or inf"},
    {"naive n=-inf", 8, "at least 1, or inf"},
    {"naive n=infinity", 8, "at least 1, or inf"},
    {"naive metric=correct c=1.5", 23, "c is a plain decimal from 0 to 1"},
    {"naive metric=correct c=-0.1", 23, "from 0 to 1"},
    {"naive metric=random seed=18446744073709551616", 25, "seed is a whole number from 0 to"},
    {"tca drop=0", 9,
     "drop is the share of patches that goes, a plain decimal above 0 and below 1"},
    {"tca drop=1", 9, "above 0 and below 1"},
    {"tca drop=nan", 9, "above 0 and below 1"},
    {"tca start=first", 10, "start is best, or a whole number"},
    {"tca start=18446744073709551616", 10, "start is best, or a whole number"},
    {"tome r=8,0.5", 9, "r is the number of tokens merged"},
    {"tome inflection=1.5", 16, "inflection is a plain decimal from -1"},
    {"evit metric=clss", 12, "metric=clss (did you mean cls?): metric is one of cls, col, correct"},
    {"naive heads=both", 12, "heads is one of mean, each"},
    {"naive at=start", 9, "at is one of mid, end"},
    {"naive order=scores", 12, "(did you mean score?)"},
    {"naive reduce=pool", 13, "reduce is one of drop, fuse, merge"},
    {"evit weights=col", 13, "weights is one of cls, score, pool, auto"},
    {"naive class_row=maybe", 16, "class_row is one of yes, no"},
    {"naive metric=correct rounding=up", 30, "rounding is one of code, paper"},
    /* layers and lists */
    {"evit layers=3,3", 12, "layer 3 is named twice"},
    {"evit layers=5,0-6", 12, "layer 5 is named twice"},
    {"evit layers=5-3", 12, "from the lower block to the higher"},
    {"evit layers=3, 6", 12, "ends with a comma; a list is 3,6,9 or (3, 6, 9)"},
    {"evit layers=(3, 6", 12, "has a '(' without its ')'"},
    {"evit layers=3,,6", 14, "has an empty place"},
    {"evit layers=()", 13, "has an empty place"},
    {"evit layers=last", 12, "layers is a list of blocks such as 3 or 0-5"},
    {"evit layers=-1", 12, "layers=-1: layers is a list"},
    {"evit layers=3-", 12, "layers=3-: "},
    {"evit layers=0-64", 12, "a policy names at most 64 layers"},
    {"evit layers=0-999999", 12, "a policy names at most 64 layers"},
    {"evit layers=0-40,50-90", 17, "a policy names at most 64 layers"},
    {"evit layers=3,6 keep=0.7,0.6,0.5", 21, "keep has 3 values for 2 layers"},
    {"naive layers=3,6 reduce=drop,merge,merge", 24, "reduce has 3 values for 2 layers"},
    {"naive layers=all p=3,4 reduce=drop,merge,merge", 30, "reduce has 3 values for 2 layers"},
};

static void test_refusals(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(refusals); i++) {
        ry_policy p;
        renyi_error err = {0};
        const char *text = refusals[i].text;
        if (ry_policy_parse(&p, text, &err) != RENYI_ERR_ARG) fail_msg("'%s' was accepted", text);
        if (!strstr(err.message, refusals[i].says))
            fail_msg("'%s': '%s' does not say '%s'", text, err.message, refusals[i].says);
        if (err.offset != refusals[i].offset)
            fail_msg("'%s': offset %ld, not %d", text, (long)err.offset, refusals[i].offset);
        assert_int_equal(ry_policy_parse(&p, text, NULL), RENYI_ERR_ARG);
    }
}

/* A text of the largest length, one byte more, and a text that fits but whose full form does not.
 */
static void test_lengths(void **state)
{
    (void)state;
    char text[2 * RY_MAX_POLICY_TEXT];
    renyi_error err;
    ry_policy p;

    memset(text, ' ', sizeof text);
    memcpy(text, "none", 4);
    text[RY_MAX_POLICY_TEXT - 1] = '\0';
    assert_int_equal(ry_policy_parse(&p, text, &err), RENYI_OK);
    text[RY_MAX_POLICY_TEXT - 1] = ' ';
    text[RY_MAX_POLICY_TEXT] = '\0';
    assert_int_equal(ry_policy_parse(&p, text, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "at most 1023 bytes; this one has 1024"));

    char *end = text + sprintf(text, "evit layers=0-49 keep=");
    for (int i = 0; i < 50; i++) end += sprintf(end, "%s.12345678901234%03d", i ? "," : "", i);
    sprintf(end, " metric=correct");
    assert_true(strlen(text) < RY_MAX_POLICY_TEXT);
    assert_int_equal(ry_policy_parse(&p, text, &err), RENYI_ERR_ARG);
    assert_non_null(strstr(err.message, "written in full, is longer than 1023 bytes"));
}

/* ---- properties ------------------------------------------------------------------------------ */

static size_t below(ry_rng *r, size_t n) { return (size_t)(ry_rng_next(r) % n); }

/* A random value for a key; mostly a valid one. */
static int random_value(char *out, ry_key key, ry_rng *r)
{
    static const char *const layers[] = {"3",     "0-5",         "early", "all",
                                         "0,3,6", "(9, 1, 4-6)", "11,2",  "2-9/12"};
    static const char *const shares[] = {"0.7", "1", ".5", "0.123456789012345", "0.05"};
    static const char *const orders[] = {"1", "2", "4", "inf", "1.5", "3.1415926535897931"};
    static const char *const slopes[] = {"0", "-1", "1", "0.25"};
    const ry_name *values = ry_keys[key].names;
    size_t n_values = 0;

    while (values && values[n_values].name) n_values++;
    switch (key) {
    case RY_KEY_DROP:
    case RY_KEY_KEEP: return sprintf(out, "%s", shares[below(r, COUNT(shares))]);
    case RY_KEY_CONTEXTUAL:
    case RY_KEY_ANCHORS:
    case RY_KEY_ALPHA:
    case RY_KEY_OMEGA:
    case RY_KEY_BETA:
    case RY_KEY_MEMORY:
    case RY_KEY_C: return sprintf(out, "%s", shares[below(r, COUNT(shares))]);
    case RY_KEY_N: return sprintf(out, "%s", orders[below(r, COUNT(orders))]);
    case RY_KEY_LAYERS: return sprintf(out, "%s", layers[below(r, COUNT(layers))]);
    case RY_KEY_INFLECTION: return sprintf(out, "%s", slopes[below(r, COUNT(slopes))]);
    case RY_KEY_START:
        if (below(r, 2)) return sprintf(out, "best");
        break;
    default: break;
    }
    if (values) return sprintf(out, "%s", values[below(r, n_values)].name);
    return sprintf(out, "%u", (unsigned)below(r, 200));
}

static void random_policy(char *out, ry_rng *r)
{
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    size_t n_rules = 0;
    while (ry_rule_names[n_rules].name) n_rules++;
    const size_t pick = below(r, n_rules + 2);
    const char *first = pick < n_rules ? ry_rule_names[pick].name : presets[below(r, count)].name;
    char *end = out + sprintf(out, "%s", first);

    for (ry_key k = 0; k < RY_N_KEYS; k++) {
        if (below(r, 5)) continue;
        const int foreign =
            pick < n_rules && !ry_key_for_rule(k, (ry_rule)ry_rule_names[pick].value);
        if (foreign && below(r, 4)) continue; /* it would be refused */
        end += sprintf(end, " %s=", ry_keys[k].name);
        end += random_value(end, k, r);
        while (ry_key_is_budget(k) && below(r, 4) == 0) {
            end += sprintf(end, ",");
            end += random_value(end, k, r);
        }
    }
}

/* The full text of any policy parses to the same struct, before and after ry_policy_check, and has
 * no key that the policy would refuse. */
static void test_round_trip(void **state)
{
    (void)state;
    const ry_policy_shape shape = {12, 196, 1, 14, 1, 0, 0, 0, 24};
    ry_rng rng = ry_rng_new(4);
    int good = 0, checked = 0;
    for (int i = 0; i < 100000; i++) {
        char text[RY_MAX_POLICY_TEXT], out[RY_MAX_POLICY_TEXT];
        ry_policy p;
        random_policy(text, &rng);
        if (ry_policy_parse(&p, text, NULL)) continue;
        full_text(text, out);
        good++;
        if (ry_policy_check(&p, &shape, NULL)) continue;
        ry_policy_print(out, &p);
        const ry_policy q = parse_text(out);
        if (memcmp(&p, &q, sizeof p)) fail_msg("'%s' becomes '%s', another policy", text, out);
        checked++;
    }
    assert_true(good > 5000 && checked > 4000);
}

static void test_presets(void **state)
{
    (void)state;
    const ry_policy_shape vit = {12, 196, 1, 14, 0, 0},
                          llava = {23, 576, 1, 24, 1, .lm_layers = 32};
    size_t count;
    const ry_preset *presets = ry_presets(&count);
    char by_name[RY_MAX_POLICY_TEXT], by_text[RY_MAX_POLICY_TEXT];

    assert_true(count > 20);
    for (size_t i = 0; i < count; i++) {
        if (ry_is_cascade(presets[i].text)) continue; /* test_cascade.c */
        assert_string_equal(full_text(presets[i].name, by_name),
                            full_text(presets[i].text, by_text));
        ry_policy p = parse_text(presets[i].name);
        const int of_llava = ry_policy_is_visual(&p) || ry_policy_is_lm(&p);
        assert_int_equal(ry_policy_check(&p, of_llava ? &llava : &vit, NULL), RENYI_OK);
        assert_true(strlen(presets[i].about) > 20);
        for (size_t j = 0; j < i; j++) assert_string_not_equal(presets[i].name, presets[j].name);
    }
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void test_numbers(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "-",
                                      ".",
                                      "1.",
                                      "+1",
                                      "1e3",
                                      "0x1",
                                      "nan",
                                      "1,5",
                                      " 1",
                                      "1 ",
                                      "--1",
                                      "1.2.3",
                                      "inf",
                                      "1_0",
                                      "٣",
                                      "1234567890123456",
                                      "0.123456789012345678"};
    double x;
    for (size_t i = 0; i < COUNT(bad); i++)
        if (ry_read_decimal(bad[i], strlen(bad[i]), &x)) fail_msg("'%s' was read", bad[i]);

    ry_rng rng = ry_rng_new(5);
    for (int i = 0; i < 200000; i++) {
        char text[RY_DECIMAL_TEXT], again[RY_DECIMAL_TEXT];
        const unsigned digits = (unsigned)below(&rng, 18);
        snprintf(text, sizeof text, "%.*f", (int)digits, ry_rng_uniform(&rng));
        double y;
        assert_true(ry_read_decimal(text, strlen(text), &x));
        assert_true(x == strtod(text, NULL)); /* glibc rounds correctly; the C locale uses "." */
        ry_print_decimal(again, x);
        assert_true(ry_read_decimal(again, strlen(again), &y) && x == y);
        assert_true(strlen(again) <= strlen(text));
    }
}

/* A locale with a decimal comma changes nothing. */
static void test_locale(void **state)
{
    (void)state;
    char out[RY_MAX_POLICY_TEXT];
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8")) skip();
    assert_string_equal(full_text("mosaic keep=0.7", out), "mosaic keep=0.7 layers=0,3,6");
    setlocale(LC_ALL, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meanings), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_lengths),  cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_presets),  cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
