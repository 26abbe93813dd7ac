/* Answers as lines of items.h: what is written is read again, figures are those of the answers, and
 * lines that say something else are refused by file and line. */
#include <math.h>
#include <string.h>

#include "kernels/sys/base.h"
#include "tests/support/files.h"
#include "tools/lab/eval/eval.h"
#include "tools/lab/eval/eval_list.h"
#include "tools/lab/eval/eval_origin.h"
#include "tools/lab/eval/items.h"

static struct err err;
static const char *one, *two, *csv;

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

static void test_round_trip(void)
{
    struct items x;
    const char *const paths[] = { one, one }; /* what is there twice counts once */
    char text[512] = "";
    CHECK(items_begins(one) && !items_begins("tests/run.sh") && !items_begins("none"));
    slurp(one, text, sizeof(text) - 1);
    const char *begins =
        "task,form,pair,id,group,policy,share,run,right_citer,right_answer,tokens,"
        "cloud,calls,read,hash,settings\ncsqa,plain @0123456789abcdef0,"
        "0123456789abcdef+fedcba9876543210,0,0000000000000007,never,,1,1,1,10,0,0,0,"
        "0000000000000abc,";
    CHECK(!strncmp(text, begins, strlen(begins)));
    CHECK(items_read(&x, paths, 2, &err) == OK && x.n == 35);
    CHECK(!strcmp(x.at[0].policy, "always") && !strcmp(x.at[0].share, ""));
    const struct items_line *l = &x.at[13]; /* always 0 to 5, mlp in run 1, then in run 2 */
    CHECK(!strcmp(l->policy, "mlp") && !strcmp(l->share, "0.05") && l->run == 2);
    CHECK(!strcmp(l->id, "two__2_") && l->is.group == 9 && l->is.hash == 0xabc);
    CHECK(l->is.right_citer == 1 && l->is.tokens == 10 && l->is.cloud == 3 && l->is.calls == 3 &&
          l->is.read == 9);
    CHECK(l->is.settings == x.at[7].is.settings && l->is.settings != x.at[0].is.settings);
    CHECK(!strcmp(x.at[14].policy, "mlp=mix") && !strcmp(x.at[14].of, x.at[0].of));
    free(x.at);
    struct eval_list both;
    struct items_file f;
    const struct eval_origin origin = { .form = "chat", .cloud_model = "a,model" };
    CHECK(eval_list_parse(&both, "mlp,mlp=mlp.safetensors,mlp=b/mlp.safetensors", &err) == OK);
    open_items(&f, two, &origin, &both, 0, "");
    for (size_t i = 0; i < 3; i++)
        write_policy(&f, &both.at[i], (double)NAN, 1, "1", 1);
    CHECK(output_file_close(&f.out, true, &err) == OK);
    eval_list_close(&both);
    const char *const other[] = { two };
    CHECK(items_read(&x, other, 1, &err) == OK && x.n == 3 && !strcmp(x.at[0].policy, "mlp"));
    CHECK(!strcmp(x.at[1].policy, "mlp=mlp#2") && !strcmp(x.at[2].policy, "mlp=mlp"));
    CHECK(!strcmp(x.at[0].of, "csqa,chat,+a_model"));
    free(x.at);
}

/* Compute the figures of a file, and return the line that begins with task, form and pair and then
 * this. */
static const char *figures(const char *row, const char *against)
{
    static char text[8192];
    const char *const parts[] = { one };
    const struct eval_options o = { .parts = parts, .nparts = 1, .csv = csv, .against = against };
    CHECK(eval_figures(&o, &err) == OK);
    text[slurp(csv, text, sizeof(text) - 1)] = 0;
    char *at = strstr(text, row);
    CHECK(at);
    at[strcspn(at, "\n")] = 0;
    return at;
}

/* The models alone have 2 and 5 of 6, and of the first four 1 and 4. */
static void test_figures(void)
{
    double x[17];
    CHECK(sscanf(figures(",never,,answer,6,1", NULL), ",never,,answer,6,1,%lf", &x[0]) == 1);
    CHECK(fabs(x[0] - 1.0 / 3) < 1e-6);
    const char *row = figures(",mlp,0.05,answer,4,2,", "mlp=mix");
    CHECK(sscanf(row,
                 ",mlp,0.05,answer,4,2,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%*f,%lf,%lf,%lf,%lf,%lf,%lf,%lf,"
                 "mlp=mix,%lf,%lf,%*f,%*f,%lf,",
                 &x[0], &x[1], &x[2], &x[3], &x[4], &x[5], &x[6], &x[7], &x[8], &x[9], &x[10],
                 &x[11], &x[12], &x[13], &x[15], &x[14], &x[16]) == 17);
    CHECK(x[0] == 0.875 && x[1] < 0.875 && x[2] > 0.875); /* 7 of 8 */
    CHECK(x[3] == 0.2 && x[4] == 10 && x[5] == 2 && x[6] == 2);
    CHECK(fabs(x[7] - 0.833333) < 1e-6 && x[8] < x[7] && x[9] >= x[7]); /* (7/8 - 1/4) / (3/4) */
    CHECK(x[10] == 0.625 && x[11] < 0.625 && x[12] > 0.625 && x[13] == 2.5);
    CHECK(x[15] == 0.1 && x[14] == 0.125); /* over 3 of the same 4, with half of the tokens */
    /* With half of its answers from the small model alone, it routes a tenth, too. */
    CHECK(fabs(x[16] - ((0.875 + 0.25) / 2 - 0.75)) < 1e-6);
    /* mlp has answered only some of the questions of mlp=mix, and the models alone only some of
     * those of random: what would be compared is empty. */
    row = figures(",mlp=mix,0.05,answer,6,1,0.5", "mlp");
    CHECK(strstr(row, ",0.500000,,,,,,,,"));
    row = figures(",random,0.02,answer,9,1,0.1", "mlp");
    CHECK(strstr(row, ",10.000000,0.000000,0.000000,0.000000,,,,,,,,,,,,,,,"));
    CHECK(figures(",always,,citer,6,1,1.000000", NULL)); /* all are right by CITER's rule */
    /* Against all, each row with a router is compared with each other one at its share, on the
     * questions that both have answered. */
    static const char *const others[] = { "always", "never" };
    for (size_t i = 0; i < 2; i++) {
        char against[32];
        snprintf(against, sizeof(against), ",%s,", others[i]);
        FILE *f = (figures(",mlp=mix,", "all"), fopen(csv, "r"));
        size_t found = 0, n = 0;
        for (char line[512]; f && fgets(line, sizeof(line), f); n++)
            found += strstr(line, ",mlp=mix,0.05,answer,") && strstr(line + 60, against);
        CHECK(f && fclose(f) == 0 && found == 1 && n == 1 + 2 * (5 + 3 + 3));
    }
}

/* Expect an error about a copy of the file in which something is replaced. */
static void refused(const char *from, const char *to, const char *says)
{
    char text[8192], *at;
    size_t n = slurp(one, text, sizeof(text) - 1);
    text[n] = 0;
    CHECK((at = strstr(text, from)));
    FILE *f = fopen(two, "wb");
    CHECK(f && fprintf(f, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
    CHECK(fclose(f) == 0);
    const char *const parts[] = { one, two };
    const struct eval_options o = { .parts = parts, .nparts = 2, .csv = csv };
    CHECK(eval_figures(&o, &err) != OK);
    CHECK_MSG((strstr(err.msg, two) || strstr(err.msg, one)) && strstr(err.msg, says),
              "expected %s: %s", says, err.msg);
}

static void test_refused(void)
{
    refused("calls,read", "read", "line 1: expected task,form");
    refused(",0000000000000abc,", ",000000000000abcd,", "line 2: expected the answer of");
    refused(",0000000000000abc,", ",000000000000abc,", "line 2: expected task,form");
    refused(",1,10,0,0,", ",1,10,11,0,", "line 2: expected task,form");
    refused(",1,1,1,10,", ",1,1,2,10,", "line 2: expected task,form");
    refused(",1,1,1,10,", ",0,1,1,10,", "line 2: expected task,form");
    refused(",1,1,1,10,", ",1,1,10,", "line 2: expected task,form");
    refused("0abc,", "0abc,0", "line 2: expected task,form");
    refused("mlp,0.05,2,", "mlp,0.05,3,", "policy mlp: expected its answer in run 3");
    /* Answers of one policy that were made with other settings are no part of it. */
    const struct eval_origin origin = { .edge_fingerprint = "0123456789abcdef",
                                        .cloud_says = "{\"fingerprint\":\"fedcba9876543210\"}",
                                        .form = "plain @0123456789abcdef0123456789" };
    const char *const mixed[] = { one, two };
    struct eval_options o = { .parts = mixed, .nparts = 2, .csv = csv };
    for (int other = 0; other < 2; other++) {
        struct eval_list l;
        struct items_file f;
        struct eval_result r;
        CHECK(eval_list_parse(&l, "never", &err) == OK);
        open_items(&f, two, &origin, &l, 50, other ? "(" : "");
        eval_result_begin(&r, &l.at[0], (double)NAN);
        items_write(&f, &r, 50, 9, &(struct asked){ .stats.tokens = 1, .hash = 1, .id = "50" });
        CHECK(output_file_close(&f.out, true, &err) == OK);
        eval_list_close(&l);
        CHECK(eval_figures(&o, &err) == (other ? ERR_ARG : OK));
    }
    CHECK(strstr(err.msg, "/two: line 2: policy never: expected settings "));
    remove(csv);
    const char *const parts[] = { one };
    o = (struct eval_options){ .parts = parts, .nparts = 1, .csv = csv, .against = "mix" };
    CHECK(eval_figures(&o, &err) == ERR_ARG && strstr(err.msg, "--against"));
    o = (struct eval_options){ .parts = parts, .nparts = 1, .csv = csv, .json = true };
    CHECK(eval_figures(&o, &err) == ERR_ARG && strstr(err.msg, "--csv"));
    CHECK(!fopen(csv, "r")); /* no figures of half the answers */
}

int main(void)
{
    one = in_scratch("one");
    two = in_scratch("two");
    csv = in_scratch("csv");
    write_one(one);
    test_round_trip();
    test_figures();
    test_refused();
    return 0;
}
