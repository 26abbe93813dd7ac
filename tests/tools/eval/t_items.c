/* Answers as lines of items.h. tools/lab/study/figures.py reads them (t_study.sh). */
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/eval/eval_origin.h"
#include "tools/lab/eval/items.h"

static struct err err;
static const char *one, *two;

/* Open items of a run with these settings; `first` is a place in the run, and none of them. */
static void open_items(struct items_file *f, const char *path, const struct eval_origin *origin,
                       const struct eval_list *l, int first, const char *place)
{
    json_t *settings = json_pack("{s:s, s:i, s:s}", "task", "csqa", "first", first, "place", place);
    CHECK(settings && items_open(f, path, settings, origin, l, &err) == OK);
    json_decref(settings);
}

/* Write the answers of a policy: rights as in the string, 10 tokens each, `cloud` of them from the
 * cloud. */
static void write_policy(struct items_file *f, const struct eval_entry *e, double share, size_t run,
                         const char *rights, size_t cloud)
{
    struct eval_result r;
    eval_result_begin(&r, e, share);
    r.trainings = run - 1;
    for (size_t i = 0; rights[i]; i++) {
        const struct asked a = { .right = rights[i] == '1',
                                 .citer = true,
                                 .stats = { .tokens = 10, .cloud = cloud },
                                 .work = { .calls = cloud, .prefilled = 3 * cloud },
                                 .hash = 0xabc,
                                 .id = i == 2 ? "two,\"2\"" : "" };
        items_write(f, &r, i, 7 + i, &a);
    }
}

static void write_one(const char *path)
{
    const struct eval_origin origin = { .edge_fingerprint = "0123456789abcdef",
                                        .cloud_says = "{\"fingerprint\":\"fedcba9876543210\"}",
                                        .form = "plain @0123456789abcdef0123456789" };
    struct eval_list l;
    struct items_file f;
    CHECK(eval_list_parse(&l, "never,mlp=a/mlp.safetensors,mlp=mix.safetensors,always,random",
                          &err) == OK);
    open_items(&f, path, &origin, &l, 0, "");
    l.at[1].known.router_sha256[0] = 'a';
    write_policy(&f, &l.at[0], (double)NAN, 1, "100010", 0);
    write_policy(&f, &l.at[1], 0.05, 1, "1011", 1); /* asked the first four alone */
    write_policy(&f, &l.at[1], 0.05, 2, "1111", 3);
    write_policy(&f, &l.at[2], 0.05, 1, "101100", 1);
    write_policy(&f, &l.at[3], (double)NAN, 1, "111110", 10);
    write_policy(&f, &l.at[4], 0.02, 1, "100000000", 0); /* more than the models alone */
    CHECK(output_file_close(&f.out, true, &err) == OK);
    eval_list_close(&l);
}

/* Return what is written of a file, from the place where this stands. */
static const char *written(const char *path, const char *text)
{
    static char all[8192];
    all[slurp(path, all, sizeof(all) - 1)] = 0;
    const char *at = strstr(all, text);
    CHECK_MSG(at, "%s: not there: %s", path, text);
    return at;
}

static void test_written(void)
{
    const char *begins =
        "task,form,pair,id,group,policy,share,run,right_citer,right_answer,tokens,"
        "cloud,calls,read,hash,settings\ncsqa,plain @0123456789abcdef0,"
        "0123456789abcdef+fedcba9876543210,0,0000000000000007,never,,1,1,1,10,0,0,0,"
        "0000000000000abc,";
    char first[17] = "", second[17] = "", other[17] = "";
    CHECK(written(one, begins) == written(one, "task,"));
    const char *line = ",two__2_,0000000000000009,mlp,0.05,%d,1,1,10,%d,%d,%d,0000000000000abc,";
    char text[128];
    for (int run = 1; run <= 2; run++) {
        int cloud = 2 * run - 1;
        snprintf(text, sizeof(text), line, run, cloud, cloud, 3 * cloud);
        snprintf(run == 1 ? first : second, 17, "%s", written(one, text) + strlen(text));
    }
    const char *mix = ",0,0000000000000007,mlp=mix,0.05,1,1,1,10,1,1,3,0000000000000abc,";
    snprintf(other, sizeof(other), "%s", written(one, mix) + strlen(mix));
    CHECK(!strcmp(first, second) && strcmp(first, other) != 0);
    struct eval_list both;
    struct items_file f;
    const struct eval_origin origin = { .form = "chat", .cloud_model = "a,model" };
    CHECK(eval_list_parse(&both, "mlp,mlp=mlp.safetensors,mlp=b/mlp.safetensors", &err) == OK);
    open_items(&f, two, &origin, &both, 0, "");
    for (size_t i = 0; i < 3; i++)
        write_policy(&f, &both.at[i], (double)NAN, 1, "1", 1);
    CHECK(output_file_close(&f.out, true, &err) == OK);
    eval_list_close(&both);
    static const char *const policies[] = { "mlp", "mlp=mlp", "mlp=mlp#2" };
    for (size_t i = 0; i < 3; i++) {
        snprintf(text, sizeof(text), "csqa,chat,+a_model,0,0000000000000007,%s,,1,", policies[i]);
        written(two, text);
    }
}

int main(void)
{
    one = in_scratch("one");
    two = in_scratch("two");
    write_one(one);
    test_written();
    return 0;
}
