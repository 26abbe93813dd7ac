/* t_extract_citer.c - CITER's own rule, row by row: the number is the stage of its
 * route_extract_answer that finds the label (0: none), as read in src/utils/io_format.py and as
 * that function answers. Needs no data. */
#include <string.h>

#include "tests/support/test.h"
#include "tools/lab/tasks/extract.h"

static const char *const letters[] = { "A", "B", "C", "D", "E" };
static const char *const texts[] = { "bank", "library", "department store", "mall", "café" };
static const struct extract_choices choices = { letters, texts, 5 };

static const struct {
    const char *text;
    char label; /* 0: none */
    int stage;
} labels[] = {
    { "Therefore, the answer is mall (B).", 'D', 1 },
    { "Therefore, the answer is MALL.", 'D', 1 },
    { "Therefore mall or bank", 'A', 1 },
    { "Therefore, the answer is bank-like", 'A', 1 },
    { "Therefore the answer is C. department store.", 'C', 1 },
    { "Therefore, the department  store (A)", 'A', 2 },
    { "Therefore, it is neither: the mall is closed.", 'D', 1 },
    { "xTherefore the library", 'B', 1 },
    { "Therefore \nthe library (C)", 'C', 3 },
    { "Therefore, it is\x0dthe library", 'B', 1 },
    { "Therefore, the CAFÉ is right", 'E', 1 },
    { "Therefore, the cafe\xcc\x81 (D)", 'D', 2 },
    { "Therefore..............................................mall", 'D', 1 },
    { "Therefore...............................................mall", 0, 0 },
    { "Thereforeéééééééééé\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3"
      "\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9"
      "\xc3\xa9\xc3\xa9\xc3\xa9\xc3\xa9mall",
      'D', 1 },
    { "Therefore                                              mall", 'D', 1 },
    { "Therefore, Therefore the mall", 'D', 1 },
    { "Therefore 1. Therefore, nothing. xxxxxxxxxxxxxxxxxxxxxxxxxxxxxx Therefore (B), mall", 'D',
      1 },
    { "therefore, the mall (E)", 'E', 3 },
    { "Thus, the mall.", 'D', 5 },
    { "Thereforemall", 'D', 1 },
    { "Therefore, small things", 'D', 1 },
    { "Therefore, the answer is (B).", 'B', 2 },
    { "Therefore, the answer is B", 'B', 2 },
    { "Therefore, the answer is b.", 0, 0 },
    { "Therefore, the answer is [C].", 'C', 2 },
    { "Therefore, the answer is \"D\".", 'D', 2 },
    { "Therefore, the answer is “E”.", 'E', 2 },
    { "Therefore, the answer is A1.", 0, 0 },
    { "Therefore, the answer is A_.", 0, 0 },
    { "Therefore, the answer is Aé.", 0, 0 },
    { "Therefore, the answer is A².", 0, 0 },
    { "Therefore, the USA.", 'A', 2 },
    { "Therefore, I think it is (D).", 'I', 2 },
    { "Therefore, it is X.", 'X', 2 },
    { "Therefore, it is xA!", 'A', 2 },
    { "Therefore, the answer is answer (label).", 0, 0 },
    { "Therefore.................................................Apple", 'A', 2 },
    { "Therefore..................................................Apple", 0, 0 },
    { "Therefore, A\xcc\x81 is none", 'A', 2 },
    { "Therefore nothing. xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx Therefore, B.", 'B', 2 },
    { "Therefore: A\xe2\x80\x8b", 'A', 2 },
    { "The answer is (C).", 'C', 3 },
    { "the answer is (c)", 'C', 3 },
    { "(label) (d) (E)", 'D', 3 },
    { "( A ) is not (b", 'A', 4 },
    { "((E))", 'E', 3 },
    { "(é) (A", 0, 0 },
    { "f(x) = 2", 'X', 3 },
    { "(1) (2)", 0, 0 },
    { "A. no (B)", 'B', 3 },
    { "A", 'A', 4 },
    { " B", 'B', 4 },
    { "\n\n C. library", 'C', 4 },
    { "(D", 'D', 4 },
    { "[E] is right", 'E', 4 },
    { "“A”", 'A', 4 },
    { "'B'", 'B', 4 },
    { "‘C", 'C', 4 },
    { "\xc2\xa0"
      "D)",
      'D', 4 },
    { "\x1f"
      "E",
      'E', 4 },
    { "A person would go", 'A', 4 },
    { "I do not know.", 'I', 4 },
    { "A1", 0, 0 },
    { "A_b", 0, 0 },
    { "Apple", 0, 0 },
    { "Bé", 0, 0 },
    { "              A", 'A', 4 },
    { "               A", 0, 0 },
    { "C) department store", 'C', 4 },
    { "A,B", 'A', 4 },
    { "A: x", 'A', 4 },
    { "a", 0, 0 },
    { "-A", 0, 0 },
    { "**A**", 0, 0 },
    { "Answer: B", 0, 0 },
    { "Xylophone", 0, 0 },
    { "X", 'X', 4 },
    { "mall", 'D', 5 },
    { "a mall is it", 'D', 5 },
    { "the big, bad library", 'B', 5 },
    { "It is the mall, so", 'D', 5 },
    { "I would go to a mall", 'I', 4 },
    { "department store", 'C', 5 },
    { "the department store", 'C', 5 },
    { "CafÉ it is", 'E', 5 },
    { "1 bank or mall", 'A', 5 },
    { "see LIBRARY now", 'B', 5 },
    { "nothing at all", 0, 0 },
    { "", 0, 0 },
    { "Small", 'D', 5 },
    { "option mall", 'D', 5 },
    { "Not the bank; mall", 'A', 5 },
    { "Answer: d", 0, 0 },
};

/* Its extract_math_answer: the first box, up to the brace that closes it; without one, the last
 * character is lost. */
static const struct {
    const char *text, *found; /* NULL: none */
} numbers[] = {
    { "\\boxed{18}", "18" },
    { "The answer is \\boxed{14}.", "14" },
    { "\\boxed{\\text{18}}", "\\text{18}" },
    { "\\boxed{x=18}", "x=18" },
    { "\\boxed{\\$56}", "\\$56" },
    { "\\boxed{33} and \\boxed{7}", "33" },
    { "\\boxed{\\frac{70}{2}}", "\\frac{70}{2}" },
    { "\\boxed{18", "1" },
    { "\\boxed{", "" },
    { "\\boxed{}", "" },
    { "\\boxed{1}}", "1" },
    { "\\boxed{{1}", "{1" },
    { "\\boxed {1}", NULL },
    { "boxed{1}", NULL },
    { "18", NULL },
    { "", NULL },
    { "\\boxed{é", "" },
    { "\\boxed{a\nb}", "a\nb" },
    { "\\fbox{1} \\boxed{2}", "2" },
    { "\\boxed{ 18 }", " 18 " },
};

static void check_label(const char *text, char want, const struct extract_choices *c)
{
    char found = extract_citer_label(text, c);
    CHECK_MSG(found == want, "%s: expected %c, found %c", text, want ? want : '-',
              found ? found : '-');
}

/* Labels are those of the question, choices are compared in lower case, in order and as they are.
 */
static void other_choices(void)
{
    static const char *const digits[] = { "1", "2", "3" };
    static const char *const odd[] = { "X RAY", " ", "" };
    static const char *const upper[] = { "ΟΔΟΣ", "İ", "МИР" };
    const struct extract_choices a = { digits, odd, 2 }, b = { digits, odd, 3 };
    const struct extract_choices c = { digits, upper, 3 };
    check_label("Therefore, an x ray", '1', &a);
    check_label("Therefore, it is", '2', &a);
    check_label("Thereforeit", 0, &a);
    check_label("Thereforeit", '3', &b);
    check_label("", '3', &b);
    check_label("οδος", '1', &c); /* with the sigma of an end */
    check_label("i\xcc\x87", '2', &c);
    check_label("мир", '3', &c);
}

int main(void)
{
    CHECK(sizeof(labels) / sizeof(labels[0]) >= 60);
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        check_label(labels[i].text, labels[i].label, &choices);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        const char *want = numbers[i].found;
        size_t n = 0;
        const char *found = extract_citer_number(&n, numbers[i].text);
        CHECK(!found == !want && (!found || (n == strlen(want) && !memcmp(found, want, n))));
    }
    other_choices();
    size_t capitals = 0; /* no small letter has another one */
    for (uint32_t c = 0; c < 0x20000; c++) {
        capitals += extract_lower(c) != c;
        CHECK(extract_lower(extract_lower(c)) == extract_lower(c));
    }
    CHECK(capitals == 553);
    return 0;
}
