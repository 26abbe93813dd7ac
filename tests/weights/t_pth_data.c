/* t_pth_data.c - PyTorch's own files, from the test data: tensors by their sha256, and every file
 * that must be refused. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "weights/pth.h"

static struct err err;
static const char *path;

/* Compute the sha256 of a tensor's bytes with sha256sum. */
static void hash(char out[65], const struct tensor *t)
{
    char command[128];
    spill(path, t->data, t->bytes);
    snprintf(command, sizeof(command), "sha256sum %s", path);
    FILE *pipe = popen(command, "r");
    CHECK(pipe && fread(out, 1, 64, pipe) == 64);
    out[64] = 0;
    CHECK(pclose(pipe) == 0);
}

/* Open a file of the test data, which must give this code. */
static struct weights *open_data(const char *name, int want)
{
    struct weights *p;
    int code = pth_open(&p, test_data("pth/%s", name), &err);
    CHECK_MSG(code == want, "%s: %d %s", name, code, err.msg);
    return p;
}

static void test_tensors(json_t *index)
{
    static const char *const same[] = { "router_zip.pth", "router_legacy.pth",
                                        "router_checkpoint.pth", "router_dataparallel.pth" };
    static const char *const bad[] = { "bad_central_offset.pth", "bad_empty.pth",
                                       "bad_pickle_byte.pth", "bad_truncated_10.pth",
                                       "bad_truncated_half.pth" };
    const char *name;
    json_t *row;
    for (size_t i = 0; i < 4; i++) {
        struct weights *p = open_data(same[i], OK);
        CHECK(weights_ntensors(p) == json_object_size(index));
        json_object_foreach(index, name, row)
        {
            const struct tensor *t = weights_find(p, name);
            json_t *shape = json_object_get(row, "shape");
            char digest[65];
            CHECK(t && t->ndim == json_array_size(shape));
            for (unsigned k = 0; k < t->ndim; k++)
                CHECK((json_int_t)t->shape[k] == json_integer_value(json_array_get(shape, k)));
            hash(digest, t);
            CHECK(strcmp(digest, json_string_value(json_object_get(row, "sha256"))) == 0);
        }
        weights_close(p);
    }
    struct weights *full = open_data(same[0], OK), *half = open_data("router_half.pth", OK);
    struct weights *bf16 = open_data("router_bf16.pth", OK);
    float a[64], b[64], c[64];
    CHECK(weights_floats(a, weights_find(full, "mlp.4.bias"), 0, 64, "f.gguf", &err) == OK);
    CHECK(weights_floats(b, weights_find(half, "mlp.4.bias"), 0, 64, "f.gguf", &err) == OK);
    CHECK(weights_floats(c, weights_find(bf16, "mlp.4.bias"), 0, 64, "f.gguf", &err) == OK);
    for (int i = 0; i < 64; i++)
        CHECK(fabsf(a[i] - b[i]) <= fabsf(a[i]) / 1024 && fabsf(a[i] - c[i]) <= fabsf(a[i]) / 128);
    weights_close(full);
    weights_close(half);
    weights_close(bf16);
    for (size_t i = 0; i < 5; i++)
        open_data(bad[i], ERR_FORMAT);
    open_data("evil_print.pth", ERR_FORMAT);
    CHECK(strstr(err.msg, "__builtin__.print"));
    open_data("router_fullmodule.pth", ERR_FORMAT);
    CHECK(strstr(err.msg, "__main__.ConfidenceModel"));
}

int main(void)
{
    json_t *index = json_load_file(test_data("pth/router_index.json"), 0, NULL);
    if (!index)
        SKIP("no pth/router_index.json: the real files of PyTorch were not tried");
    path = in_scratch("a");
    test_tensors(index);
    json_decref(index);
    return 0;
}
