/* augment_ops.h - Pillow's operations on 8-bit RGB images, with its bits: ImageOps, ImageEnhance,
 * Image.transform, ImageFilter.GaussianBlur. Images are dense: [height, width, 3].
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef RY_AUGMENT_OPS_H
#define RY_AUGMENT_OPS_H

#include "renyi/renyi.h"

/* ---- a level becomes another one: in place, n pixels ----------------------------------------- */

void ry_op_auto_contrast(uint8_t *rgb, size_t n); /* each channel's darkest 0, its lightest 255 */
void ry_op_equalize(uint8_t *rgb, size_t n);
void ry_op_invert(uint8_t *rgb, size_t n);
void ry_op_posterize(uint8_t *rgb, size_t n, unsigned bits);     /* 0 to 8 bits stay */
void ry_op_solarize(uint8_t *rgb, size_t n, unsigned threshold); /* invert from it on */
void ry_op_solarize_add(uint8_t *rgb, size_t n, unsigned add);   /* to levels below 128 */
void ry_op_brightness(uint8_t *rgb, size_t n, double factor);    /* 1 = as it is */
void ry_op_contrast(uint8_t *rgb, size_t n, double factor);      /* away from the mean grey */
void ry_op_color(uint8_t *rgb, size_t n, double factor);         /* away from its own grey */
void ry_op_grey(uint8_t *rgb, size_t n);

/* ---- a pixel depends on its neighbors -------------------------------------------------------- */

typedef struct ry_op_size {
    uint32_t width, height; /* >= 1 */
} ry_op_size;

/* Away from the smoothed image. out and in do not overlap. */
void ry_op_sharpness(uint8_t *out, const uint8_t *in, ry_op_size size, double factor);

/* Pillow's GaussianBlur: three box blurs in each direction. scratch: as large as the image. */
void ry_op_blur(uint8_t *rgb, uint8_t *scratch, ry_op_size size, double radius);

/* Output pixel (x, y) is looked up at m[0] x' + m[1] y' + m[2], m[3] x' + m[4] y' + m[5], with
 * x' = x + 1/2, y' = y + 1/2; outside the image it is `fill`. Bilinear or bicubic (Lanczos is
 * taken as bicubic: Pillow has no such transform). out and in do not overlap. */
typedef struct ry_op_affine_spec {
    double m[6];
    renyi_interpolation filter;
    uint8_t fill[3];
} ry_op_affine_spec;
void ry_op_affine(uint8_t *out, const uint8_t *in, ry_op_size size, const ry_op_affine_spec *spec);
void ry_op_affine_plain(uint8_t *out, const uint8_t *in, ry_op_size size,
                        const ry_op_affine_spec *spec); /* any CPU; the same bits */
void ry_op_affine_vec8(uint8_t *out, const uint8_t *in, ry_op_size size,
                       const ry_op_affine_spec *spec);

/* The matrix of Image.rotate: counter-clockwise round the centre. */
void ry_op_rotation(double m[6], ry_op_size size, double degrees);

#endif
