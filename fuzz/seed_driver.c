/* seed_driver.c - runs files through a fuzz target without libFuzzer: every argument is a file or a
 * folder. A folder that does not exist is fine (no crash file yet), no file at all is a failure.
 * SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    if (!f) return 0;
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    uint8_t *data =
        malloc(size > 0 ? (size_t)size : 1); /* exact size: the sanitizer sees overreads */
    const size_t got = data && size > 0 ? fread(data, 1, (size_t)size, f) : 0;
    fclose(f);
    if (data) LLVMFuzzerTestOneInput(data, got);
    free(data);
    return 1;
}

static int run_folder(const char *path)
{
    int n = 0;
    DIR *dir = opendir(path);
    if (!dir) return run_file(path);
    for (struct dirent *e; (e = readdir(dir));) {
        char name[4096];
        if (e->d_name[0] == '.') continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        n += run_file(name);
    }
    closedir(dir);
    return n;
}

int main(int argc, char **argv)
{
    int n = 0;
    for (int i = 1; i < argc; i++) n += run_folder(argv[i]);
    printf("%s: %d inputs\n", argv[0], n);
    return n ? 0 : 1;
}
