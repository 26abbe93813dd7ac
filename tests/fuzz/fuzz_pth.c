/* fuzz_pth.c - PyTorch checkpoints: zip archives and pickles. */
#include "kernels/sys/base.h"
#include "tests/fuzz/fuzz.h"
#include "weights/pth.h"

const bool fuzz_whole = false;

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err err = { "" };
    struct weights *pth;
    unsigned sum = 0;
    fuzz_write("a.pth", p, n);
    fuzz_begin();
    int code = pth_open(&pth, fuzz_path("a.pth"), &err);
    for (size_t i = 0; code == OK && i < weights_ntensors(pth); i++) {
        const struct tensor *t = weights_tensor(pth, i);
        for (size_t k = 0; k < t->bytes; k++)
            sum += ((const unsigned char *)t->data)[k];
    }
    CHECK(sum < UINT32_MAX);
    if (code == OK)
        weights_close(pth);
    fuzz_end(code, &err);
    return 0;
}

/* The legacy form: pickles with magic, protocol and byte order, one of a dict with a tensor of one
 * float, one with the list of storages, and the storage. */
static const char legacy[] =
    "\x80\2\x8a\12\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    "\x80\2M\xe9\3."
    "\x80\2}X\15\0\0\0little_endian\x88s."
    "\x80\2}X\1\0\0\0tctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n"
    "X\1\0\0\0"
    "0X\3\0\0\0cpuK\1NtQK\0(K\1t(K\1t\x89"
    "ccollections\nOrderedDict\n)RtRs."
    "\x80\2]X\1\0\0\0"
    "0a.\1\0\0\0\0\0\0\0\0\0\x80\x3f";

size_t fuzz_seed(size_t i, uint8_t *out, size_t room)
{
    static const char *const names[] = { "pth/router_legacy.pth", "pth/router_zip.pth",
                                         "pth/router_checkpoint.pth" };
    if (i == 0)
        return fuzz_join(out, 0, room, legacy, sizeof(legacy) - 1);
    return i <= sizeof(names) / sizeof(*names) ? fuzz_data(out, room, names[i - 1]) : 0;
}
