/* t_find.c - what people call a model, in caches and folders made here: what is found, what is
 * refused and with which command, and names that must lead nowhere. */
#include <errno.h>
#include <sys/stat.h>

#include "tests/support/test.h"
#include "weights/find.h"
#include "weights/weights.h"

#define A "0123456789abcdef0123456789abcdef01234567"
#define B "fedcba9876543210fedcba9876543210fedcba98"

static char root[64];
static struct err err;

/* Return root/path; two results live at a time. */
static const char *at(const char *path)
{
    static char out[2][512];
    static unsigned turn;
    char *p = out[turn++ % 2];
    snprintf(p, sizeof(out[0]), "%s/%s", root, path);
    return p;
}

/* Make the folders that lead to a path. */
static void folders(const char *path)
{
    char p[512];
    snprintf(p, sizeof(p), "%s", at(path));
    for (char *slash = p + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        CHECK(mkdir(p, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

static void file(const char *path, const char *text)
{
    folders(path);
    spill(at(path), text, strlen(text));
}

/* Write files below root, whose paths have blanks between them. */
static void files(const char *paths)
{
    char each[512];
    CHECK(snprintf(each, sizeof(each), "%s", paths) < (int)sizeof(each));
    for (char *p = strtok(each, " "); p; p = strtok(NULL, " "))
        file(p, "x");
}

static void link_to(const char *path, const char *target)
{
    folders(path);
    CHECK(symlink(target, at(path)) == 0);
}

static void found(const char *name, const char *path)
{
    char out[FIND_PATH];
    int code = find_model(out, name, &err);
    CHECK_MSG(code == OK && strcmp(out, path) == 0, "%s: %d %s", name, code,
              code == OK ? out : err.msg);
}

/* Require this code and a line with all of these texts, which are separated by "|". */
static void refused(const char *name, int want, const char *texts)
{
    char out[FIND_PATH], each[512];
    int code = find_model(out, name, &err);
    CHECK(snprintf(each, sizeof(each), "%s", texts) < (int)sizeof(each));
    for (char *p = strtok(each, "|"); p; p = strtok(NULL, "|")) {
        CHECK_MSG(code == want && strstr(err.msg, p) && !strchr(err.msg, '\n'),
                  "%s: %d %s: expected %d %s", name, code, code ? err.msg : out, want, p);
    }
}

static void test_local(void)
{
    files("one/only-Q4_K_M.gguf plain/config.json both/model.safetensors both/extra.q8_0.gguf "
          "many/qwen2.5-0.5b-instruct-q4_k_m.gguf many/qwen2.5-0.5b-instruct-fp16.gguf "
          "many/qwen2.5-0.5b-instruct-q4_k.gguf many/Model-IQ4_XS.gguf many/mmproj-F16.gguf "
          "many/sub/deeper/Model.Q6_K.gguf many/Model.imatrix.gguf many/.hidden-Q2_K.gguf "
          "with:colon.gguf many/sub/deeper/still/Model.Q5_K.gguf"); /* level 4 is not searched */
    found(at("one/only-Q4_K_M.gguf"), at("one/only-Q4_K_M.gguf"));
    found(at("with:colon.gguf"), at("with:colon.gguf")); /* a path that exists wins */
    found(at("one"), at("one/only-Q4_K_M.gguf"));
    found(at("plain"), at("plain"));
    found(at("both"), at("both"));
    found(at("both:q8_0"), at("both/extra.q8_0.gguf"));
    found(at("many:q4_K_m"), at("many/qwen2.5-0.5b-instruct-q4_k_m.gguf"));
    found(at("many:Q4_K"), at("many/qwen2.5-0.5b-instruct-q4_k.gguf"));
    found(at("many:FP16"), at("many/qwen2.5-0.5b-instruct-fp16.gguf"));
    found(at("many:iq4_xs"), at("many/Model-IQ4_XS.gguf"));
    found(at("many:Q6_K"), at("many/sub/deeper/Model.Q6_K.gguf"));
    found(at("many:Model.Q6_K.gguf"), at("many/sub/deeper/Model.Q6_K.gguf"));
    refused(at("many"), ERR_FORMAT,
            "NAME:TYPE|found Model-IQ4_XS.gguf, qwen2.5-0.5b-instruct-fp16.gguf, "
            "qwen2.5-0.5b-instruct-q4_k.gguf, qwen2.5-0.5b-instruct-q4_k_m.gguf");
    CHECK(!strstr(err.msg, "Q6_K"));
    found(at("many/sub"), at("many/sub")); /* without a type, what is below is not looked at */
    refused(at("many:Q8_0"), ERR_IO, "one GGUF file, found Model-IQ4_XS.gguf, |, Model.Q6_K.gguf");
    refused(at("many:Q5_K"), ERR_IO, "one GGUF file, found Model-IQ4_XS.gguf, ");
    refused(at("many:Q4"), ERR_IO, "one GGUF file, found Model-IQ4_XS.gguf, ");
    refused(at("many:qwen2.5"), ERR_FORMAT, "one GGUF file|-fp16.gguf, |-q4_k.gguf, |-q4_k_m.gguf");
    CHECK(!strstr(err.msg, "IQ4_XS"));
    refused(at("plain:Q4_K_M"), ERR_IO, "found none");
    refused(at("one/only-Q4_K_M.gguf:Q4_K_M"), ERR_IO, "No such file");
    refused(at("none"), ERR_IO, "No such file");
    refused(at("none:Q4_0"), ERR_IO, "No such file");
    CHECK(!strstr(err.msg, "to fetch it"));
    refused("", ERR_IO, "No such file");
    refused(":", ERR_IO, "No such file");
    refused(":Q4_0", ERR_IO, "No such file");
    refused(at("many:"), ERR_IO, "No such file");
}

/* Files of the same type cannot be told apart by it, so their names are listed. */
static void test_ambiguous(void)
{
    files("pair/a-Q4_0.gguf pair/b-Q4_0.gguf ud/m-Q4_K_M.gguf ud/m-UD-Q4_K_M.gguf");
    refused(at("pair"), ERR_FORMAT, "found a-Q4_0.gguf, b-Q4_0.gguf");
    refused(at("pair:q4_0"), ERR_FORMAT, "found a-Q4_0.gguf, b-Q4_0.gguf");
    found(at("pair:a-q4_0"), at("pair/a-Q4_0.gguf"));
    found(at("pair:B-Q4_0.GGUF"), at("pair/b-Q4_0.gguf"));
    found(at("ud:UD-Q4_K_M"), at("ud/m-UD-Q4_K_M.gguf"));
    found(at("ud:m-Q4_K_M"), at("ud/m-Q4_K_M.gguf"));
    for (int i = 0; i < 60; i++) { /* a list that is cut */
        char name[64];
        snprintf(name, sizeof(name), "crowd/some-model-number-%d-F32.gguf", i);
        file(name, "x");
    }
    refused(at("crowd"), ERR_FORMAT, "found some-model-number-0-F32.gguf, some-model-number-1-");
    CHECK(strlen(err.msg) + 1 < sizeof(err.msg));
}

/* The parts of a sharded file are one candidate. */
static void test_shards(void)
{
    size_t stem;
    unsigned number, count;
    CHECK(find_shard("d/m-00002-of-00003.gguf", &stem, &number, &count) && stem == 3 &&
          number == 2 && count == 3);
    char bad[] = "-00001-of-00003.gguf m-00000-of-00003.gguf m-00004-of-00003.gguf "
                 "m-0001-of-00003.gguf m-00001-of-00003 m-00001-of-00003.ggu .gguf "
                 "d/-00001-of-00003.gguf m-00001_of-00003.gguf m-+0001-of-00003.gguf "
                 "m-00001-of-00003.gguf.x";
    CHECK(!find_shard("", &stem, &number, &count));
    for (char *p = strtok(bad, " "); p; p = strtok(NULL, " "))
        CHECK(!find_shard(p, &stem, &number, &count));
    files("parts/Q4_K_M/m-Q4_K_M-00001-of-00002.gguf parts/Q4_K_M/m-Q4_K_M-00002-of-00002.gguf");
    found(at("parts/Q4_K_M"), at("parts/Q4_K_M/m-Q4_K_M-00001-of-00002.gguf"));
    file("parts/BF16/m-00002-of-00003.gguf", "x"); /* the first part stands for all */
    refused(at("parts:Q8_0"), ERR_IO, "found m-Q4_K_M-00001-of-00002.gguf");
    refused(at("parts:bf16"), ERR_IO, "found m-Q4_K_M-00001-of-00002.gguf");
    file("parts/BF16/m-00001-of-00003.gguf", "x"); /* its reader names the part that is missing */
    found(at("parts:Q4_K_M"), at("parts/Q4_K_M/m-Q4_K_M-00001-of-00002.gguf"));
    found(at("parts:m-Q4_K_M-00001-of-00002.gguf"),
          at("parts/Q4_K_M/m-Q4_K_M-00001-of-00002.gguf"));
    found(at("parts:bf16"), at("parts/BF16/m-00001-of-00003.gguf"));
}

/* Set the four variables; NULL unsets one. Values are below root, except "". */
static void environment(const char *hub, const char *home, const char *xdg, const char *user)
{
    static const char *const names[] = { "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME" };
    const char *values[] = { hub, home, xdg, user };
    for (size_t i = 0; i < 4; i++) {
        const char *v = values[i];
        CHECK((v ? setenv(names[i], *v ? at(v) : v, 1) : unsetenv(names[i])) == 0);
    }
}

#define REPO     "models--Org--Name-1.5"
#define TO_FETCH "; to fetch it in Mizzle's sources: " FETCH
#define FETCH    "sh tools/download.sh "

/* Where the cache is, by four variables. */
static void test_environment(void)
{
    static const char *const hubs[] = { "h1", "h2/hub", "h3/huggingface/hub",
                                        "h4/.cache/huggingface/hub" };
    for (size_t i = 0; i < 4; i++) {
        char path[256];
        snprintf(path, sizeof(path), "%s/" REPO "/snapshots/" A "/model.safetensors", hubs[i]);
        file(path, "x");
        snprintf(path, sizeof(path), "%s/" REPO "/refs/main", hubs[i]);
        file(path, A);
    }
    static const struct {
        const char *hub, *home, *xdg, *user;
        int want; /* index into hubs */
    } rows[] = {
        { "h1", "h2", "h3", "h4", 0 }, { NULL, "h2", "h3", "h4", 1 }, { NULL, NULL, "h3", "h4", 2 },
        { NULL, NULL, NULL, "h4", 3 }, { "", "h2", "h3", "h4", 1 },   { "", "", "h3", "h4", 2 },
        { "", "", "", "h4", 3 },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char path[FIND_PATH], out[FIND_PATH];
        environment(rows[i].hub, rows[i].home, rows[i].xdg, rows[i].user);
        CHECK_MSG(find_model(out, "Org/Name-1.5", &err) == OK, "row %zu: %s", i, err.msg);
        snprintf(path, sizeof(path), "%s/" REPO "/snapshots/" A, at(hubs[rows[i].want]));
        struct stat a, b;
        CHECK(stat(path, &a) == 0 && stat(out, &b) == 0 && a.st_ino == b.st_ino);
    }
    environment(NULL, NULL, NULL, NULL);
    refused("Org/Name-1.5", ERR_IO, "the cache has no /.cache/huggingface/hub/" REPO "/refs/main");
    environment("", "", "", "");
    refused("Org/Name-1.5", ERR_IO, "the cache has no /.cache/huggingface/hub/" REPO);
    environment("none", NULL, NULL, NULL);
    refused("Org/Name-1.5", ERR_IO,
            "no such file or folder|/none/" REPO "/refs/main; to fetch it in|" FETCH
            "Org/Name-1.5");
    CHECK(find_ends(err.msg, "Org/Name-1.5"));
    refused("Org/Name-1.5:Q4_K_M", ERR_IO, FETCH "Org/Name-1.5:Q4_K_M");
    CHECK(access(at("none"), F_OK) != 0); /* nothing was made */
}

#define CACHE "cache/" REPO

/* What a repository in the cache may look like. */
static void test_cache(void)
{
    char path[512];
    environment("cache", NULL, NULL, NULL);
    folders(CACHE "/x");
    refused("Org/Name-1.5", ERR_IO,
            "the cache has no |" CACHE "/refs/main; |" FETCH "Org/Name-1.5");
    file(CACHE "/refs/main", A);
    refused("Org/Name-1.5", ERR_IO, CACHE "/snapshots/" A "; |" FETCH "Org/Name-1.5");
    file(CACHE "/snapshots/" A, "x");
    refused("Org/Name-1.5", ERR_IO, CACHE "/snapshots/" A "; |" FETCH "Org/Name-1.5");
    CHECK(unlink(at(CACHE "/snapshots/" A)) == 0);
    file(CACHE "/blobs/aaaa", "x");
    link_to(CACHE "/snapshots/" A "/config.json", "../../blobs/aaaa");
    snprintf(path, sizeof(path), "%s", at(CACHE "/snapshots/" A));
    found("Org/Name-1.5", path);
    refused("Org/Name-1.5:Q4_0", ERR_IO, "found none; to fetch it|" FETCH "Org/Name-1.5:Q4_0");
    link_to(CACHE "/snapshots/" B "/m-Q4_0.gguf", "../../blobs/aaaa");
    link_to(CACHE "/snapshots/" B "/m-Q8_0.gguf", "../../blobs/bbbb"); /* not downloaded */
    found("Org/Name-1.5", path);                                       /* refs/main decides */
    file(CACHE "/refs/main", B "\n");
    refused("Org/Name-1.5", ERR_FORMAT, "found m-Q4_0.gguf, m-Q8_0.gguf");
    found("Org/Name-1.5:q4_0", at(CACHE "/snapshots/" B "/m-Q4_0.gguf"));
    found("Org/Name-1.5:q8_0", at(CACHE "/snapshots/" B "/m-Q8_0.gguf"));
    struct weights *w;
    CHECK(weights_open(&w, at(CACHE "/snapshots/" B "/m-Q8_0.gguf"), &err) == ERR_IO);
    CHECK(strstr(err.msg, FETCH "Org/Name-1.5 m-Q8_0.gguf"));
    CHECK(weights_open(&w, path, &err) == ERR_FORMAT); /* config.json is "x" */
    file(CACHE "/blobs/bbbb", "version https://git-lfs.github.com/spec/v1\n");
    CHECK(weights_open(&w, at(CACHE "/snapshots/" B "/m-Q8_0.gguf"), &err) == ERR_FORMAT);
    CHECK(strstr(err.msg, "found a Git LFS pointer; to fetch it"));
    CHECK(strstr(err.msg, FETCH "Org/Name-1.5 m-Q8_0.gguf"));
    refused("Org/Name-1.5:Q5_0", ERR_IO,
            "found m-Q4_0.gguf, m-Q8_0.gguf; to fetch it|" FETCH "Org/Name-1.5:Q5_0");
    file(CACHE "/refs/main", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    refused("Org/Name-1.5", ERR_IO, "/snapshots/aaaa|" FETCH "Org/Name-1.5");
    static const char *const refs[] = { "",        "\n",  "../../..", "/etc", "..",
                                        "abc/def", A " ", "ABC",      A A,    "a\nb" };
    for (size_t i = 0; i < sizeof(refs) / sizeof(*refs); i++) {
        file(CACHE "/refs/main", refs[i]);
        refused("Org/Name-1.5", ERR_FORMAT, "refs/main|a commit's hash, found none");
    }
    CHECK(unlink(at(CACHE "/refs/main")) == 0 && mkfifo(at(CACHE "/refs/main"), 0600) == 0);
    refused("Org/Name-1.5", ERR_FORMAT,
            "refs/main|a commit's hash, found none"); /* must not wait */
    CHECK(unlink(at(CACHE "/refs/main")) == 0);
    link_to(CACHE "/refs/main", "main");
    refused("Org/Name-1.5", ERR_IO, "refs/main");
    CHECK(unlink(at(CACHE "/refs/main")) == 0);
    file(CACHE "/refs/main", A);
}

/* Links: out of the cache they are followed, for it is the user's own; loops end. */
static void test_links(void)
{
    file("elsewhere/blob", "GGUF");
    link_to("cache/models--L--out/snapshots/" A "/m.gguf", "../../../../elsewhere/blob");
    link_to("cache/models--L--loop/snapshots/" A "/m.gguf", "m.gguf");
    link_to("cache/models--L--self/snapshots/" A, A);
    link_to("cache/models--L--dirs/snapshots/" A "/again", ".");
    link_to("cache/models--L--dirs/snapshots/" A "/m.gguf", "../../../../elsewhere/blob");
    link_to("moved", "cache");
    static const char *const refs[] = { "out", "loop", "self", "dirs" };
    for (size_t i = 0; i < 4; i++) {
        char path[64];
        snprintf(path, sizeof(path), "cache/models--L--%s/refs/main", refs[i]);
        file(path, A);
    }
    found("L/out", at("cache/models--L--out/snapshots/" A "/m.gguf"));
    found("L/dirs", at("cache/models--L--dirs/snapshots/" A "/m.gguf")); /* not again/m.gguf */
    found("L/loop", at("cache/models--L--loop/snapshots/" A "/m.gguf"));
    struct weights *w;
    CHECK(weights_open(&w, at("cache/models--L--loop/snapshots/" A "/m.gguf"), &err) == ERR_IO);
    refused("L/self", ERR_IO, "models--L--self/snapshots/" A "; to fetch it");
    environment("moved", NULL, NULL, NULL);
    found("L/out", at("moved/models--L--out/snapshots/" A "/m.gguf"));
    environment("cache", NULL, NULL, NULL);
}

/* A cache on a disk without links has the files themselves in its snapshots. */
static void test_without_links(void)
{
    file("cache/models--F--files/refs/main", A);
    file("cache/models--F--files/snapshots/" A "/Q8_0/m-Q8_0-00001-of-00002.gguf", "x");
    file("cache/models--F--files/snapshots/" A "/Q8_0/m-Q8_0-00002-of-00002.gguf", "x");
    found("F/files", at("cache/models--F--files/snapshots/" A "/Q8_0/m-Q8_0-00001-of-00002.gguf"));
}

/* A folder that cannot be read is named; below the first, it is passed over. */
static void test_unreadable(void)
{
    file("locked/in/m-Q8_0.gguf", "x");
    file("locked/m-Q4_0.gguf", "x");
    CHECK(chmod(at("locked/in"), 0) == 0);
    found(at("locked:Q4_0"), at("locked/m-Q4_0.gguf"));
    if (geteuid() != 0) {
        refused(at("locked/in"), ERR_IO, "locked/in: Permission denied");
        refused(at("locked:Q8_0"), ERR_IO, "found m-Q4_0.gguf");
    }
    CHECK(chmod(at("locked/in"), 0700) == 0);
}

/* Names that are no repository are paths that do not exist: no command is offered for them. */
static void test_hostile(void)
{
    char names[] =
        "../Name|Org/..|Org/.|./Org|/Org/Name|Org//Name|Org/Name/x|Org/Na--me|Or--g/Name|"
        "Org/Na..me|-Org/Name|Org/-Name|Org/|/Name|/|Org/Na me|Org/Na;me|Org/$(x)|"
        "Org/Na'me|Org/N\xc3\xa4me|Org/\x1b[31m|Org/x.gguf|Org/x.safetensors|Name|"
        "Org/Name\n|..:Q4_0x/y|Org/..:Q4_0|models--Org--Name|Org\\Name";
    for (char *p = strtok(names, "|"); p; p = strtok(NULL, "|")) {
        char out[FIND_PATH];
        int code = find_model(out, p, &err);
        if (code == OK) /* "/" is a folder */
            CHECK(strcmp(p, "/") == 0);
        else
            CHECK((code == ERR_IO || code == ERR_FORMAT) && !strstr(err.msg, "to fetch it"));
    }
    char longest[3 * FIND_PATH], half[512];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    refused(longest, ERR_IO, "a");
    longest[4000] = '\0';
    longest[2000] = '/';
    refused(longest, ERR_IO, "a");
    memset(half, 'a', sizeof(half) - 1);
    half[96] = '/';
    half[193] = '\0';
    refused(half, ERR_IO, "to fetch it");
    half[193] = 'a';
    half[194] = '\0';
    refused(half, ERR_IO, "No such file");
    refused("Org/None:$(x)'", ERR_IO, "No such file");
    CHECK(!strstr(err.msg, "to fetch it"));
}

/* The folder of a repository, and the command for a file in it. */
static void test_repository(void)
{
    char out[FIND_PATH], hint[300];
    CHECK(find_repository(out, "/c/models--O--N/snapshots/ab/x.gguf"));
    CHECK(strcmp(out, "/c/models--O--N") == 0);
    CHECK(find_repository(out, "models--O--N/snapshots/ab") && strcmp(out, "models--O--N") == 0);
    CHECK(!find_repository(out, "/c/models--O--N/blobs/ab"));
    CHECK(!find_repository(out, "/c/O--N/snapshots/ab") && !find_repository(out, "snapshots/ab"));
    CHECK(!find_repository(out, "/c/models--O--N/snapshots/") && !find_repository(out, ""));
    static const char *const rows[][2] = {
        { "/c/models--O--N/snapshots/ab/s/x.gguf", TO_FETCH "O/N s/x.gguf" },
        { "/c/models--O--N/snapshots/ab/", TO_FETCH "O/N" },
        { "/c/models--O--N/snapshots/ab/$(x).gguf", TO_FETCH "O/N" },
        { "/c/models--ON/snapshots/ab/x.gguf", "" },
        { "/c/models--O--N--M/snapshots/ab/x.gguf", "" },
        { "/c/models--$O--N/snapshots/ab/x.gguf", "" },
        { "/c/x.gguf", "" },
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        find_hint(hint, sizeof(hint), rows[i][0]);
        CHECK(strcmp(hint, rows[i][1]) == 0);
    }
}

int main(void)
{
    char command[128];
    snprintf(root, sizeof(root), "build/find-XXXXXX");
    CHECK(mkdtemp(root));
    environment("none", NULL, NULL, NULL);
    test_local();
    test_ambiguous();
    test_shards();
    test_environment();
    test_cache();
    test_links();
    test_without_links();
    test_unreadable();
    test_hostile();
    test_repository();
    snprintf(command, sizeof(command), "rm -rf %s", root);
    CHECK(system(command) == 0);
    return 0;
}
