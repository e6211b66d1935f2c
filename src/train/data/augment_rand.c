/* augment_rand.c - see augment_rand.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/data/augment_rand.h"

static void swap(ry_canvas *c)
{
    uint8_t *const rgb = c->rgb;
    c->rgb = c->other;
    c->other = rgb;
}

/* ---- strength ------------------------------------------------------------------------------ */

/* The share of full strength that is no change at 1: 0.1 to 1.9. */
static double enhance(double share, int negate)
{
    const double factor = 1.0 + (negate ? -share * 0.9 : share * 0.9);
    return factor > 0.1 ? factor : 0.1;
}

double ry_rand_argument(ry_rand_op op, double magnitude, int negate)
{
    const double share = magnitude / 10.0, sign = negate ? -1.0 : 1.0;
    switch (op) {
    case RY_RAND_ROTATE: return sign * (share * 30.0);
    case RY_RAND_POSTERIZE: /* 0 bits, all black, are none: newer Pillows refuse them */
        return share < 1.0 ? 4 - (int)(share * 4) : 1;
    case RY_RAND_SOLARIZE: return 256 - (int)(share * 256);
    case RY_RAND_SOLARIZE_ADD: return (int)(share * 110);
    case RY_RAND_COLOR:
    case RY_RAND_CONTRAST:
    case RY_RAND_BRIGHTNESS:
    case RY_RAND_SHARPNESS: return enhance(share, negate);
    case RY_RAND_SHEAR_X:
    case RY_RAND_SHEAR_Y: return sign * (share * 0.3);
    case RY_RAND_TRANSLATE_X:
    case RY_RAND_TRANSLATE_Y: return sign * (share * 0.45);
    case RY_RAND_AUTO_CONTRAST:
    case RY_RAND_EQUALIZE:
    case RY_RAND_INVERT:
    case RY_RAND_OPS: break;
    }
    return 0.0;
}

/* ---- doing it ------------------------------------------------------------------------------ */

static void move(ry_canvas *c, ry_rand_op op, double argument)
{
    ry_op_affine_spec spec = {{1, 0, 0, 0, 1, 0}, c->filter, {c->fill[0], c->fill[1], c->fill[2]}};
    if (op == RY_RAND_ROTATE) {
        if (argument == 0.0) return;
        ry_op_rotation(spec.m, c->size, argument);
    }
    if (op == RY_RAND_SHEAR_X) spec.m[1] = argument;
    if (op == RY_RAND_SHEAR_Y) spec.m[3] = argument;
    if (op == RY_RAND_TRANSLATE_X) spec.m[2] = argument * c->size.width;
    if (op == RY_RAND_TRANSLATE_Y) spec.m[5] = argument * c->size.height;
    ry_op_affine(c->other, c->rgb, c->size, &spec);
    swap(c);
}

void ry_rand_apply(ry_canvas *c, ry_rand_op op, double argument)
{
    const size_t n = (size_t)c->size.width * c->size.height;
    switch (op) {
    case RY_RAND_AUTO_CONTRAST: ry_op_auto_contrast(c->rgb, n); break;
    case RY_RAND_EQUALIZE: ry_op_equalize(c->rgb, n); break;
    case RY_RAND_INVERT: ry_op_invert(c->rgb, n); break;
    case RY_RAND_POSTERIZE: ry_op_posterize(c->rgb, n, (unsigned)argument); break;
    case RY_RAND_SOLARIZE: ry_op_solarize(c->rgb, n, (unsigned)argument); break;
    case RY_RAND_SOLARIZE_ADD: ry_op_solarize_add(c->rgb, n, (unsigned)argument); break;
    case RY_RAND_COLOR: ry_op_color(c->rgb, n, argument); break;
    case RY_RAND_CONTRAST: ry_op_contrast(c->rgb, n, argument); break;
    case RY_RAND_BRIGHTNESS: ry_op_brightness(c->rgb, n, argument); break;
    case RY_RAND_SHARPNESS:
        ry_op_sharpness(c->other, c->rgb, c->size, argument);
        swap(c);
        break;
    case RY_RAND_ROTATE:
    case RY_RAND_SHEAR_X:
    case RY_RAND_SHEAR_Y:
    case RY_RAND_TRANSLATE_X:
    case RY_RAND_TRANSLATE_Y: move(c, op, argument); break;
    case RY_RAND_OPS: break;
    }
}

/* Every draw takes its numbers from the generator whether they are used or not. */
void ry_rand_augment(ry_canvas *c, const ry_augment *a, ry_rng *rng)
{
    for (uint32_t i = 0; i < a->rand_ops; i++) {
        const ry_rand_op op = (ry_rand_op)ry_rng_below(rng, RY_RAND_OPS);
        const int is_done = ry_rng_uniform(rng) <= a->rand_prob;
        const int negate = ry_rng_uniform(rng) > 0.5;
        double magnitude = a->rand_magnitude + a->rand_std * ry_rng_normal(rng);
        if (!(magnitude > 0.0)) magnitude = 0.0;
        if (magnitude > 10.0) magnitude = 10.0;
        if (is_done) ry_rand_apply(c, op, ry_rand_argument(op, magnitude, negate));
    }
}

void ry_color_jitter(ry_canvas *c, double strength, ry_rng *rng)
{
    ry_rand_op order[3] = {RY_RAND_BRIGHTNESS, RY_RAND_CONTRAST, RY_RAND_COLOR};
    const double low = strength < 1.0 ? 1.0 - strength : 0.0;
    for (uint32_t i = 3; i > 1; i--) {
        const uint32_t j = ry_rng_below(rng, i);
        const ry_rand_op last = order[i - 1];
        order[i - 1] = order[j];
        order[j] = last;
    }
    for (int i = 0; i < 3; i++)
        ry_rand_apply(c, order[i], low + (1.0 + strength - low) * ry_rng_uniform(rng));
}

void ry_three_augment(ry_canvas *c, ry_rng *rng)
{
    const size_t n = (size_t)c->size.width * c->size.height;
    const uint32_t which = ry_rng_below(rng, 3);
    const double radius = 0.1 + 1.9 * ry_rng_uniform(rng);
    if (which == 0) ry_op_grey(c->rgb, n);
    if (which == 1) ry_op_solarize(c->rgb, n, 128);
    if (which == 2) ry_op_blur(c->rgb, c->other, c->size, radius);
}
