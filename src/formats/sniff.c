/* sniff.c - recognizes model files by their magic numbers, and names the kinds that cannot be
 * read.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/sniff.h"

#include "base/status.h"

#include <stdio.h>
#include <string.h>

/* Recognized but not read: the message for the user. */
static const struct {
    const char *magic;
    size_t length, offset;
    const char *is;
} other_files[] = {
    {"version https://git-lfs", 23, 0,
     "this is a Git LFS pointer, not the file: run `git lfs pull`, or download it again"},
    {"lmgg", 4, 0, "GGML is not supported; use the model.safetensors or GGUF file of the model"},
    {"\x89HDF\r\n\x1a\n", 8, 0, "HDF5 (Keras) is not supported; use the safetensors file"},
    {"\x93NUMPY", 6, 0, "a NumPy array is not a model; use the safetensors file"},
    {"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", 14, 0,
     "PyTorch's format from before 1.6 is not supported; load it with torch and torch.save it "
     "again, "
     "or use the safetensors file"},
    {"\x80\x02", 2, 0, "a bare pickle is not supported; use the safetensors file"},
    {"\x80\x03", 2, 0, "a bare pickle is not supported; use the safetensors file"},
    {"\x80\x04", 2, 0, "a bare pickle is not supported; use the safetensors file"},
    {"\x80\x05", 2, 0, "a bare pickle is not supported; use the safetensors file"},
    {"ustar", 5, 257, "a tar archive; unpack it, or use the safetensors file"},
    {"\x1f\x8b", 2, 0, "compressed with gzip; unpack it first"},
    {"\x28\xb5\x2f\xfd", 4, 0, "compressed with zstd; unpack it first"},
    {"\xfd\x37zXZ", 5, 0, "compressed with xz; unpack it first"},
    {"\xff\xd8\xff", 3, 0, "a JPEG image, not a model"},
    {"\x89PNG", 4, 0, "a PNG image, not a model"},
    {"RIFF", 4, 0, "a RIFF file (WebP image?), not a model"},
    {"%PDF", 4, 0, "a PDF document, not a model"},
    {"\x7f"
     "ELF",
     4, 0, "a program or library, not a model"},
};

static int begins(const unsigned char *bytes, size_t size, size_t at, const char *magic, size_t n)
{
    return size >= at + n && !memcmp(bytes + at, magic, n);
}

static int ends_with(const char *s, const char *tail)
{
    const size_t n = strlen(s), m = strlen(tail);
    return n >= m && !strcmp(s + n - m, tail);
}

/* First byte that is not white space, or 0. */
static unsigned char first_visible(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (!strchr(" \t\r\n", bytes[i]) || !bytes[i]) return bytes[i];
    return 0;
}

/* ModelProto has no magic: field 1 (ir_version, small) and then field 2 or 7 or 8. */
static int looks_like_onnx(const char *path, const unsigned char *b, size_t size)
{
    if (ends_with(path, ".onnx")) return 1;
    return size >= 3 && b[0] == 0x08 && b[1] > 0 && b[1] < 0x20 &&
           (b[2] == 0x12 || b[2] == 0x3a || b[2] == 0x42);
}

static renyi_status fail_unknown(const char *path, const unsigned char *bytes, size_t size,
                                 renyi_error *err)
{
    char hex[3 * 8 + 1] = "";
    for (size_t i = 0; i < 8 && i < size; i++) snprintf(hex + 3 * i, 4, " %02x", bytes[i]);
    return ry_fail(
        err, RENYI_ERR_FORMAT, 0,
        "%s: not a model: it begins with%s; a .safetensors file, a GGUF or a PyTorch zip "
        "(.pth, .pt, .bin) expected",
        path, hex);
}

static renyi_status refuse_known(const char *path, const unsigned char *bytes, size_t size,
                                 renyi_error *err)
{
    for (size_t i = 0; i < sizeof other_files / sizeof *other_files; i++)
        if (begins(bytes, size, other_files[i].offset, other_files[i].magic, other_files[i].length))
            return ry_fail(err, RENYI_ERR_UNSUPPORTED, 0, "%s: %s", path, other_files[i].is);
    if (looks_like_onnx(path, bytes, size))
        return ry_fail(err, RENYI_ERR_UNSUPPORTED, 0,
                       "%s: ONNX is not supported; use the safetensors file of the model", path);
    if (first_visible(bytes, size < 64 ? size : 64) == '<')
        return ry_fail(err, RENYI_ERR_FORMAT, 0,
                       "%s: a web page (HTML or XML), not a model: the download went wrong", path);
    return RENYI_OK;
}

renyi_status ry_sniff(ry_file_kind *kind, const char *path, const unsigned char *bytes, size_t size,
                      renyi_error *err)
{
    if (!size) return ry_fail(err, RENYI_ERR_FORMAT, 0, "%s: the file is empty", path);
    if (begins(bytes, size, 0, "PK\x03\x04", 4) || begins(bytes, size, 0, "PK\x05\x06", 4)) {
        *kind = RY_FILE_TORCH_ZIP;
        return RENYI_OK;
    }
    /* a header length below 2^32, then a brace: no other format begins like that */
    if (begins(bytes, size, 4, "\0\0\0\0{", 5)) {
        *kind = RY_FILE_SAFETENSORS;
        return RENYI_OK;
    }
    if (begins(bytes, size, 0, "GGUF", 4)) {
        *kind = RY_FILE_GGUF;
        return RENYI_OK;
    }
    RY_TRY(refuse_known(path, bytes, size, err));
    if (first_visible(bytes, size < 64 ? size : 64) == '{') {
        *kind = RY_FILE_SHARD_INDEX;
        return RENYI_OK;
    }
    if (begins(bytes, size, 8, "{", 1) || ends_with(path, ".safetensors")) {
        *kind = RY_FILE_SAFETENSORS; /* damaged: the reader's message is more exact */
        return RENYI_OK;
    }
    return fail_unknown(path, bytes, size, err);
}
