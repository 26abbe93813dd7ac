/* t_chat_jinja.c - Hugging Face's own Jinja, from npm, renders the same text of random
 * conversations as chat_encode, for each form, found by the template's text or named; what messages
 * say never becomes a mark. */
#include <jansson.h>

#include "model/text/chat.h"
#include "tests/support/chat_bytes.h"

#define VERSION "0.5.11"
#define MODULES "build/npm-jinja/node_modules"

enum { ROUNDS = 1500, MESSAGES = 7, TEXT = 1 << 16 };

static uint64_t state = 14;

static size_t pick(size_t n)
{
    state = rand_u64(state, 1);
    return (size_t)(state % n);
}

static char templates[7][TEXT];
static const char *forms[7]; /* of each */
static size_t ntemplates;

/* Templates as others have written them; the first three are here, the others are test data. */
static void read_templates(void)
{
    static const char *const names[][2] = { { "Qwen-QwQ-32B", "qwq" },
                                            { "Qwen-Qwen2.5-7B-Instruct", "qwen2.5" },
                                            { "Qwen-Qwen3-0.6B", "qwen3" },
                                            { "Qwen3-Coder", "qwen3-coder" } };
    strcpy(templates[0], CHAT_CHATML);
    forms[ntemplates++] = "chatml";
    strcpy(templates[ntemplates], CHAT_DEEPSEEK);
    forms[ntemplates++] = "deepseek";
    strcpy(templates[ntemplates], CHAT_DEEPSEEK_R1);
    forms[ntemplates++] = "deepseek-r1";
    for (size_t i = 0; i < 4; i++) {
        const char *path = test_data("tokenizer/templates/%s.jinja", names[i][0]);
        if (access(path, R_OK)) {
            printf("SKIP: no %s\n", path);
            continue;
        }
        templates[ntemplates][slurp(path, templates[ntemplates], TEXT - 1)] = 0;
        forms[ntemplates++] = names[i][1];
    }
}

static char *texts_here[ROUNDS]; /* what the library makes of each conversation */

/* Write what was encoded as text. */
static char *decode(const struct tokenizer *t, const uint32_t *ids, size_t n, size_t *starts)
{
    char *text = malloc(n * 30 + 1);
    size_t at = 0;
    CHECK(text);
    *starts = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *p = tokenizer_bytes(t, ids[i], &len);
        CHECK(p);
        memcpy(text + at, p, len);
        at += len;
        *starts += ids[i] == 256 || ids[i] == 260;
    }
    text[at] = 0;
    return text;
}

/* Make a text of things that templates and tokenizers look for. */
static void make_text(char *out)
{
    static const char pieces[] =
        "<|im_start|>~<|im_end|>~<think>~</think>~<tool_response>~</tool_response>~\n~\n\n~ "
        "~a~Word~"
        "{{ x }}~{% endif %}~\xc3\xa9~\"~\\n~\xf0\x9d\x84\x9e~\r\n~<|im_start|>system\n~"
        "<｜begin▁of▁sentence｜>~<｜Assistant｜>~<th~</th~\xe2\x80\xa8~\t";
    out[0] = 0;
    for (size_t n = pick(9); n; n--) {
        const char *p = pieces;
        for (size_t skip = pick(25); skip; skip--)
            p = strchr(p, '~') + 1;
        strncat(out, p, strcspn(p, "~"));
    }
    if (pick(8) == 0) {
        char inner[300];
        strcpy(inner, out);
        sprintf(out, "<tool_response>%s</tool_response>", inner);
    }
}

/* Make a conversation, encode it, and write it to f for the other side. */
static void make_round(char **out, FILE *f)
{
    static const char *const roles[] = { "user", "assistant", "system" };
    static const char *const thoughts[] = { "", "r", " two\n\nlines" }; /* as marks, or apart */
    static char texts[MESSAGES][400];
    size_t which = pick(ntemplates);
    const char *template = templates[which];
    struct chat_message m[MESSAGES];
    bool deepseek = strncmp(forms[which], "deepseek", 8) == 0;
    struct tokenizer *t = chat_bytes_open(template, deepseek ? 8 : pick(2) ? 4 : 2);
    struct chat *c;
    uint32_t *ids;
    size_t n = 1 + pick(MESSAGES), count;
    enum chat_think think = (enum chat_think)pick(3);
    json_t *list = json_array();
    for (size_t i = 0; i < n; i++) {
        const char *role = pick(12) ? roles[(i + pick(5) / 4) % 2] : roles[2];
        role = i == 0 && pick(3) == 0 ? roles[2] : role;
        make_text(texts[i]);
        json_t *said = json_pack("{s:s,s:s}", "role", role, "content", texts[i]);
        if (!strcmp(role, "assistant") && strstr(template, "reasoning_content") && !pick(3)) {
            const char *thought = thoughts[pick(3)];
            snprintf(texts[i], sizeof(texts[i]), "<think>\n%s\n</think>\n\nSo.", thought);
            json_object_set_new(said, "content", json_string("So."));
            json_object_set_new(said, "reasoning_content", json_string(thought));
        }
        m[i] = (struct chat_message){ role, texts[i], strlen(texts[i]) };
        json_array_append_new(list, said);
    }
    CHECK(chat_open(&c, t, pick(2) ? NULL : forms[which], NULL, NULL) == OK);
    CHECK(chat_form(c) && !strcmp(chat_form(c), forms[which]));
    CHECK(chat_encode(c, &ids, &count, m, n, think, NULL) == OK);
    size_t starts;
    *out = decode(t, ids, count, &starts);
    CHECK(starts == (deepseek ? 1 : n + 1) ||
          (!deepseek && starts == n + 2 && strcmp(m[0].role, "system") != 0));
    json_t *line = json_pack("{s:s,s:o}", "template", template, "messages", list);
    if (think != CHAT_THINK_AUTO)
        json_object_set_new(line, "enable_thinking", json_boolean(think == CHAT_THINK_ON));
    CHECK(json_dumpf(line, f, JSON_COMPACT) == 0 && fputc('\n', f) == '\n');
    json_decref(line);
    free(ids);
    chat_close(c);
    tokenizer_close(t);
}

static bool shell(const char *command)
{
    int status = system(command);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    char in[] = "/tmp/mizzle-jinja-XXXXXX", command[400];
    static char line[TEXT];
    if (!shell("command -v node >/dev/null"))
        SKIP("no node");
    if (!shell("sh tests/npm.sh npm-jinja @huggingface/jinja@" VERSION))
        SKIP("npm cannot install @huggingface/jinja");
    read_templates();
    int fd = mkstemp(in);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    CHECK(f);
    for (size_t i = 0; i < ROUNDS; i++)
        make_round(&texts_here[i], f);
    CHECK(fclose(f) == 0);
    snprintf(command, sizeof(command),
             "NODE_PATH=" MODULES " node tests/support/chat_render.js <%s", in);
    FILE *node = popen(command, "r");
    CHECK(node);
    for (size_t i = 0; i < ROUNDS; i++) {
        CHECK(fgets(line, sizeof(line), node));
        json_t *text = json_loads(line, JSON_DECODE_ANY, NULL);
        CHECK(json_is_string(text));
        CHECK_MSG(strcmp(json_string_value(text), texts_here[i]) == 0, "%zu: Jinja:\n%s\nhere:\n%s",
                  i, json_string_value(text), texts_here[i]);
        json_decref(text);
        free(texts_here[i]);
    }
    CHECK(pclose(node) == 0);
    remove(in);
    return 0;
}
