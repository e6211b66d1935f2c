/* photo_file.c - see photo_file.h. Files are read, not mapped: one that is cut short meanwhile must
 * be a failed photo, not a signal. SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "eval/photo_file.h"

#include "base/alloc.h"
#include "base/status.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static renyi_status fail_errno(renyi_error *err)
{
    return ry_fail(err, RENYI_ERR_IO, -1, "%s", strerror(errno));
}

static renyi_status read_fd(int fd, uint8_t **bytes, size_t *size, uint64_t max_bytes,
                            renyi_error *err)
{
    struct stat st;
    if (fstat(fd, &st)) return fail_errno(err);
    if (!S_ISREG(st.st_mode)) return ry_fail(err, RENYI_ERR_IO, -1, "not a regular file");
    if ((uint64_t)st.st_size > max_bytes)
        return ry_fail(err, RENYI_ERR_LIMIT, -1, "file of %llu bytes; at most %llu accepted",
                       (unsigned long long)st.st_size, (unsigned long long)max_bytes);
    *bytes = ry_alloc(NULL, (size_t)st.st_size, 1);
    if (!*bytes) return ry_fail_nomem(err, (size_t)st.st_size);
    for (*size = 0; *size < (size_t)st.st_size;) {
        const ssize_t n = read(fd, *bytes + *size, (size_t)st.st_size - *size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return fail_errno(err);
        if (n == 0) break; /* shorter than it was: the decoder will say */
        *size += (size_t)n;
    }
    return RENYI_OK;
}

static renyi_status fit_bytes(uint8_t *pixels, uint32_t original[2], const uint8_t *bytes,
                              size_t size, const ry_photo_spec *spec, renyi_error *err)
{
    const renyi_image_options opt = {
        .struct_size = sizeof opt, .apply_exif = spec->apply_exif, .limits = spec->limits};
    renyi_image image;
    RY_TRY(renyi_image_decode(&image, bytes, size, &opt, err));
    original[0] = image.width;
    original[1] = image.height;
    const renyi_status st = renyi_image_fit(pixels, &image, &spec->preprocess, NULL, err);
    renyi_image_free(&image, &opt);
    return st;
}

renyi_status ry_photo_read(uint8_t **bytes, size_t *size, const char *path, uint64_t max_bytes,
                           int *is_missing, renyi_error *err)
{
    *bytes = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not hang us */
    if (is_missing) *is_missing = fd < 0 && errno == ENOENT;
    if (fd < 0) return fail_errno(err);
    const renyi_status st = read_fd(fd, bytes, size, max_bytes, err);
    close(fd);
    if (!st) return st;
    ry_free(NULL, *bytes);
    *bytes = NULL;
    return st;
}

renyi_status ry_photo_load_sized(uint8_t *pixels, uint32_t size[2], const char *path,
                                 const ry_photo_spec *spec, renyi_error *err)
{
    uint8_t *bytes;
    size_t n_bytes;
    RY_TRY(ry_photo_read(&bytes, &n_bytes, path, spec->limits.max_image_bytes, NULL, err));
    const renyi_status st = fit_bytes(pixels, size, bytes, n_bytes, spec, err);
    ry_free(NULL, bytes);
    return st;
}

renyi_status ry_photo_load(uint8_t *pixels, const char *path, const ry_photo_spec *spec,
                           renyi_error *err)
{
    uint32_t size[2];
    return ry_photo_load_sized(pixels, size, path, spec, err);
}

void ry_photo_prefetch(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return;
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
    close(fd);
}

void ry_photo_normalise(float *chw, const uint8_t *pixels, const renyi_preprocess *spec)
{
    const size_t area = (size_t)spec->size * spec->size;
    for (size_t c = 0; c < 3; c++) {
        const float mean = (float)spec->mean[c], std = (float)spec->std[c];
        /* The order of timm and torchvision: to [0, 1], minus mean, over std, all in float. */
        for (size_t i = 0; i < area; i++)
            chw[c * area + i] = ((float)pixels[3 * i + c] / 255.0f - mean) / std;
    }
}
