/* pickle_global.c - the whole list: nothing else is ever accepted, and nothing here is ever called.
 * SPDX-License-Identifier: Apache-2.0 */
#include "formats/torch/pickle_global.h"

#include <string.h>

#define TORCHSCRIPT "__torch__"

static const ry_pickle_global globals[] = {
    {"torch._utils", "_rebuild_tensor_v2", RY_ROLE_TENSOR, RY_F32},
    {"torch._utils", "_rebuild_parameter", RY_ROLE_PARAMETER, RY_F32},
    {"collections", "OrderedDict", RY_ROLE_DICT, RY_F32},
    {"torch", "FloatStorage", RY_ROLE_STORAGE, RY_F32},
    {"torch", "HalfStorage", RY_ROLE_STORAGE, RY_F16},
    {"torch", "BFloat16Storage", RY_ROLE_STORAGE, RY_BF16},
    {"torch", "DoubleStorage", RY_ROLE_STORAGE, RY_F64},
    {"torch", "LongStorage", RY_ROLE_STORAGE, RY_I64},
    {"torch", "IntStorage", RY_ROLE_STORAGE, RY_I32},
    {"torch", "ShortStorage", RY_ROLE_STORAGE, RY_I16},
    {"torch", "CharStorage", RY_ROLE_STORAGE, RY_I8},
    {"torch", "ByteStorage", RY_ROLE_STORAGE, RY_U8},
    {"torch", "BoolStorage", RY_ROLE_STORAGE, RY_BOOL},
    {TORCHSCRIPT, "*", RY_ROLE_MODULE, RY_F32},
    /* typed lists and dicts among a TorchScript module's attributes */
    {"torch.jit._pickle", "build_intlist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "build_doublelist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "build_boollist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "build_tensorlist", RY_ROLE_INERT, RY_F32},
    {"torch.jit._pickle", "restore_type_tag", RY_ROLE_INERT, RY_F32},
    /* what training scripts put beside the weights: options, optimizer state, metrics */
    {"argparse", "Namespace", RY_ROLE_INERT, RY_F32},
    {"collections", "defaultdict", RY_ROLE_INERT, RY_F32},
    {"__builtin__", "dict", RY_ROLE_INERT, RY_F32},
    {"builtins", "dict", RY_ROLE_INERT, RY_F32},
    {"__builtin__", "set", RY_ROLE_INERT, RY_F32},
    {"builtins", "set", RY_ROLE_INERT, RY_F32},
    {"torch", "Size", RY_ROLE_INERT, RY_F32},
    {"torch", "device", RY_ROLE_INERT, RY_F32},
    {"torch", "float32", RY_ROLE_INERT, RY_F32},
    {"torch", "float16", RY_ROLE_INERT, RY_F32},
    {"torch", "bfloat16", RY_ROLE_INERT, RY_F32},
    {"torch", "float64", RY_ROLE_INERT, RY_F32},
    {"torch", "int64", RY_ROLE_INERT, RY_F32},
    {"numpy", "dtype", RY_ROLE_INERT, RY_F32},
    {"numpy", "ndarray", RY_ROLE_INERT, RY_F32},
    {"numpy.core.multiarray", "scalar", RY_ROLE_INERT, RY_F32},
    {"numpy._core.multiarray", "scalar", RY_ROLE_INERT, RY_F32},
    {"numpy.core.multiarray", "_reconstruct", RY_ROLE_INERT, RY_F32},
    {"numpy._core.multiarray", "_reconstruct", RY_ROLE_INERT, RY_F32},
    {"_codecs", "encode", RY_ROLE_INERT, RY_F32},
    {"pathlib", "PosixPath", RY_ROLE_INERT, RY_F32},
    {"pathlib", "WindowsPath", RY_ROLE_INERT, RY_F32},
};

static int equal(const char *s, const unsigned char *text, size_t length)
{
    return strlen(s) == length && !memcmp(s, text, length);
}

/* "__torch__", "__torch__.torch.nn.modules.conv" */
static int is_torchscript(const unsigned char *module, size_t length)
{
    const size_t n = sizeof TORCHSCRIPT - 1;
    return length >= n && !memcmp(module, TORCHSCRIPT, n) && (length == n || module[n] == '.');
}

int ry_pickle_global_find(const unsigned char *module, size_t module_length,
                          const unsigned char *name, size_t name_length)
{
    const int script = is_torchscript(module, module_length);
    for (size_t i = 0; i < sizeof globals / sizeof *globals; i++)
        if (script ? globals[i].role == RY_ROLE_MODULE
                   : equal(globals[i].module, module, module_length) &&
                         equal(globals[i].name, name, name_length))
            return (int)i;
    return -1;
}

const ry_pickle_global *ry_pickle_global_at(int index) { return &globals[index]; }
