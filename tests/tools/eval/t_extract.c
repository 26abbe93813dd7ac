/* t_extract.c - what a reader takes for the answer, row by row, with the reason above each group;
 * and texts of any bytes, which take neither long nor more than their memory. Needs no data. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/support/test.h"
#include "tools/lab/tasks/extract.h"

static const char *const letters[] = { "A", "B", "C", "D", "E" };
static const char *const texts[] = { "bank", "library", "department store", "mall", "new york" };
static const struct extract_choices choices = { letters, texts, 5 };

static const struct {
    const char *text;
    char label; /* 0: none */
} labels[] = {
    /* Stated after "answer". */
    { "Answer: a", 'A' },
    { "answer: (c)", 'C' },
    { "**Answer:** B", 'B' },
    { "**Answer: B**", 'B' },
    { "Answer: **B. library**", 'B' },
    { "### Answer\n\nB", 'B' },
    { "Ans: C", 'C' },
    { "Answer - C", 'C' },
    { "The answer is b", 'B' },
    { "The answer is C. department store.", 'C' },
    { "The correct answer is:\n\n**C. department store**", 'C' },
    { "The answer to the question is B.", 'B' },
    { "The answer would be D.", 'D' },
    { "So the final answer is: D", 'D' },
    { "[Explanation]. Therefore, the answer is answer (D) mall.", 'D' },
    { "Therefore, the answer is C (department store).", 'C' },
    { "The answer is [D] mall", 'D' },
    { "My answer is \"library\".", 'B' },
    { "The correct answer is **mall**.", 'D' },
    /* Stated as option or choice, or by one who chooses. */
    { "The correct option is D.", 'D' },
    { "The choice that best fits is (C).", 'C' },
    { "The right choice is new york.", 'E' },
    { "My choice: E", 'E' },
    { "I would go with B.", 'B' },
    { "I'd pick (D) mall.", 'D' },
    { "I choose C", 'C' },
    { "I would choose option B (library).", 'B' },
    { "Option A", 'A' },
    { "option b", 'B' },
    { "Choice C", 'C' },
    { "Letter D", 'D' },
    /* The label at the end, as CITER's prompt asks for it; its training answers have such. */
    { "A skill is needed. The answer must be a skill. He has dexterity at the mall (d).", 'D' },
    { "You should not drink water from the mall (d).", 'D' },
    { "Therefore, the answer is bank or mall (b).", 'B' },
    { "The answer is C. Others, like the bank (A), do not fit.", 'C' },
    { "The answer is C, not the bank (A).", 'C' },
    { "The answer is C. The others are (A), (B), (D) and (E).", 'C' },
    /* In a box or behind the mark of GSM8K. */
    { "\\boxed{E}", 'E' },
    { "$\\boxed{\\text{C}}$", 'C' },
    { "\\boxed{\\text{department store}}", 'C' },
    { "\\boxed{(C)}", 'C' },
    { "The final answer is $\\boxed{D}$", 'D' },
    { "#### C", 'C' },
    /* An article is no label. */
    { "The answer is a department store.", 'C' },
    { "The answer is a", 'A' },
    { "The answer is a bank.", 'A' },
    { "The answer is A bank", 'A' },
    { "A person would look at it and say that it depends.", 0 },
    { "A person would go to the mall.", 'D' },
    { "The answer is A because of its doors.", 'A' },
    { "I do not know.", 0 },
    /* The last statement counts, but not of another question. */
    { "Wait, the answer is (A). No, the answer is (B).", 'B' },
    { "The answer is B. The other options, A, C and D, are incorrect.", 'B' },
    { "Therefore, the answer is mall (D).\n\nQuestion: What?\nAnswer: A", 'D' },
    { "D\n\nQ: x\nAnswer: A", 'D' },
    { "B<|im_end|>\n<|im_start|>user Answer: C", 'B' },
    { "<think>The answer is A.\nQuestion: is it?</think>\n\nThe answer is B.", 'B' },
    { "Question: Where?\nChoices:\nA. bank\nB. library\nAnswer: B", 'B' },
    { "(A) no. (B) no. (C) no. (D) no. (E) no. Looking again, the answer is (D).", 'D' },
    { "A. is not right, B. is not right either. The answer is B.", 'B' },
    /* What is denied is no answer. */
    { "The answer is not (A) but (B).", 'B' },
    { "The answer is not A. It is B.", 'B' },
    { "The answer is (A), not (B).", 'A' },
    { "The answer isn't the bank; it is the library.", 'B' },
    { "Option D is wrong. Option C is wrong.", 0 },
    { "Not (A). Not (B). Not (D). (E) is the only one left.", 'E' },
    { "A is wrong, so it must be C.", 'C' },
    { "It is not a bank.", 0 },
    { "One would go to the mall, not the bank.", 'D' },
    { "The wrong answer is A.", 0 },
    /* Praised. */
    { "(B) is the correct answer.", 'B' },
    { "B is correct.", 'B' },
    { "Option D is the best choice because malls have doors.", 'D' },
    { "Since he wants money, the bank is the right place.", 'A' },
    { "The most likely place is the library.", 'B' },
    { "The best place to go is a mall, since it has doors.", 'D' },
    { "Based on the options, the best answer is likely a library", 'B' },
    { "Therefore, C is the answer.", 'C' },
    /* Begins with a label, or is a choice. */
    { " B", 'B' },
    { "B.", 'B' },
    { "c)", 'C' },
    { "(c)", 'C' },
    { "c. department store", 'C' },
    { "B because a library has a door", 'B' },
    { "B - library", 'B' },
    { "B: library", 'B' },
    { "[B]", 'B' },
    { "\"B\"", 'B' },
    { "“B”", 'B' },
    { "B</s>", 'B' },
    { "New York", 'E' },
    { "new york.", 'E' },
    { "NEW YORK\nExplanation: it is big", 'E' },
    { "A. bank\n\nExplanation: it is a bank, as the library and the mall are not.", 'A' },
    /* The only one that is named. */
    { "Revolving doors are found in a department store.", 'C' },
    { "It is the library, since nothing else fits.", 'B' },
    { "He went to the bank (A).", 'A' },
    { "I think it is D", 'D' },
    { "Probably B", 'B' },
    { "I am not sure, but I would say (B).", 'B' },
    { "It's the mall.", 'D' },
    { "In conclusion, you would find it in a library.", 'B' },
    { "So, C.", 'C' },
    { "Sure! C", 'C' },
    /* Nothing is stated, or several things. */
    { "A, B, C, D, E", 0 },
    { "A\nB\nC\nD\nE", 0 },
    { "Choices: A. bank B. library C. department store D. mall E. new york", 0 },
    { "Let's analyze each option:\n\nA. bank: it has doors.\n\nB. library: books.\n\nC. department "
      "store: This is",
      0 },
    { "Option analysis:\n- **A. bank**: doors\n- **B. library**: books\n- **C. department", 0 },
    { "", 0 },
    { "\n\n", 0 },
    { "Therefore, the answer is", 0 },
    { "The answer is (", 0 },
    { "Therefore, the answer is answer (label).", 0 },
    { "None of the above.", 0 },
    { "The answer is none of the above.", 0 },
    { "There is no correct answer.", 0 },
    { "I cannot determine the answer.", 0 },
    { "It depends on whether it is a bank.", 0 },
    { "This is about department store and mall and nothing can be said.", 0 },
    { "The answer is (A) or (B).", 0 },
    { "The answer is either (A) or (B).", 0 },
    { "The answer is A and B.", 0 },
    { "It could be (A) or (B).", 0 },
    { "Such as a bank, library, or mall.", 0 },
    { "She is likely in a place with doors, such as a bank, library, or mall.", 0 },
    { "A. bank\nB. library\nC. department store\nD. mall\nE. new york", 0 },
    { "A) bank B) library C) department store D) mall E) new york", 0 },
    { "Who was in the mall or the crowd? The answer is answer (label).", 0 },
    { "Let's think. The bank has a door. A library has books. The mall", 0 },
    /* Denied before its verb, or as one of two. */
    { "The answer cannot be B.", 0 },
    { "It cannot be B, so it must be C.", 'C' },
    { "The answer can't be the bank, so it is the library.", 'B' },
    { "It can't be A or B. It must be D.", 'D' },
    { "The answer is neither A nor B but E.", 'E' },
    { "Neither A nor B fits, but E does.", 'E' },
    { "The answer is neither the bank nor the mall, but the library.", 'B' },
    { "Not A but C.", 'C' },
    { "A is wrong. B does not fit. So E.", 'E' },
    { "A doesn't work. B doesn't work. Therefore E.", 'E' },
    { "C and D are wrong, which leaves B.", 'B' },
    { "The answer must be B or D, and it is not B. Hence D.", 'D' },
    { "B makes no sense. C does.", 'C' },
    /* Several are right. */
    { "Both A and C are correct.", 0 },
    { "Both the bank and the mall are correct.", 0 },
    { "Both (A) and (B) are possible, but the answer is (B).", 'B' },
    /* What makes sense, fits or is better. */
    { "D makes sense.", 'D' },
    { "I believe D makes the most sense because it has doors.", 'D' },
    { "Only D fits.", 'D' },
    { "It could be A, but C is better.", 'C' },
    { "A works, but B works better.", 'B' },
    { "A is possible, but B is more likely.", 'B' },
    { "A is right, but B is not better.", 'A' },
    /* Behind "it's". */
    { "It's B.", 'B' },
    { "It's A.", 'A' },
    { "I think it’s D because it has doors.", 'D' },
    { "The answer isn't A, it's B.", 'B' },
    { "It's B or C.", 0 },
    { "It's not B.", 0 },
    /* In single quotation marks. */
    { "'A'", 'A' },
    { "The answer is 'A'.", 'A' },
    { "‘C’", 'C' },
    { "It is Bob's A, not the mall's.", 0 },
};

static const struct {
    const char *text, *number; /* NULL: none */
} numbers[] = {
    /* The box of the last sentence that has one; in it, the first. */
    { "\\boxed{18}", "18" },
    { "\\[ \\boxed{18} \\]", "18" },
    { "\\boxed{33} and \\boxed{7}", "33" },
    { "Step 1: \\boxed{6}. Step 2: \\boxed{18}.", "18" },
    { "\\boxed{6}\n\\boxed{18}", "18" },
    { "\\boxed{} so \\boxed{18}", "18" },
    { "\\boxed{18} eggs, or 1.5 dozen.", "18" },
    { "\\boxed{39", "39" },
    { "\\boxed{18}\n\nQuestion: x\nSolution: \\boxed{7}", "18" },
    { "The answer is 7, that is \\boxed{18}.", "18" },
    { "\\boxed{\\boxed{18}}", "18" },
    /* LaTeX, units, currencies and separators are not part of a number. */
    { "\\boxed{\\text{18}}", "18" },
    { "\\boxed{\\text{18 dollars}}", "18" },
    { "\\boxed{18\\text{ dollars}}", "18" },
    { "\\boxed{\\text{Total: }18}", "18" },
    { "\\boxed{\\mathbf{18}}", "18" },
    { "\\boxed{18\\ \\text{km}}", "18" },
    { "\\boxed{\\$56}", "56" },
    { "$\\boxed{\\$1,234.50}$", "1234.5" },
    { "\\boxed{€18}", "18" },
    { "\\boxed{ 1,234 }", "1234" },
    { "\\boxed{1{,}234}", "1234" },
    { "\\boxed{1\\,234}", "1234" },
    { "\\boxed{10,000,000}", "10000000" },
    { "\\boxed{25\\%}", "25" },
    { "\\boxed{41210.00}", "41210" },
    { "\\boxed{18.}", "18" },
    { "\\boxed{.5}", "0.5" },
    { "\\boxed{-3}", "-3" },
    { "\\boxed{−3}", "-3" },
    { "\\boxed{007}", "7" },
    { "\\boxed{-0}", "0" },
    /* What is equal, and fractions. */
    { "\\boxed{x=18}", "18" },
    { "\\boxed{x = 18}", "18" },
    { "\\boxed{9 \\times 2 = 18}", "18" },
    { "\\boxed{\\approx 18}", "18" },
    { "\\boxed{\\frac{70}{2}}", "35" },
    { "\\boxed{\\dfrac{3}{4}}", "0.75" },
    { "\\boxed{2\\frac{1}{2}}", "2.5" },
    { "\\boxed{1/2}", "0.5" },
    { "\\boxed{-\\frac{1}{2}}", "-0.5" },
    { "\\boxed{\\frac{7}{3}}", "2.3333333333" },
    { "\\boxed{1/0}", "1" },
    /* The mark of GSM8K. */
    { "#### 18", "18" },
    { "So 9*2=18\n#### 18", "18" },
    { "#### 1,005\n", "1005" },
    { "#### -5", "-5" },
    { "####18", "18" },
    { "#### Step 1\nThe answer is 18.", "18" },
    /* Stated after "answer". */
    { "The answer is 18.", "18" },
    { "The answer is $1,800.00 per day.", "1800" },
    { "The final answer is: 18", "18" },
    { "Answer: 18", "18" },
    { "**Answer:** 18", "18" },
    { "Answer:\n\n18", "18" },
    { "The answer is \\(18\\).", "18" },
    { "The answer is **18**.", "18" },
    { "The answer is that she makes 18 dollars.", "18" },
    { "The answer is 9 * 2 = 18.", "18" },
    { "The answer is 18 dollars for 3 days.", "18" },
    { "The answer is 1/4.", "0.25" },
    { "The answer is 20%.", "20" },
    /* Bold, or in the last sentence with a number. */
    { "She makes **$18** every day, and 3 on Sundays.", "18" },
    { "Total: **18 dollars**", "18" },
    { "7 eggs. She has **18*", "18" },
    { "So she makes $18 every day for 3 days.", "18" },
    { "She has 9 * 2 = 18 eggs.", "18" },
    { "16 - 3 - 4 = 9\n9 * 2 = 18", "18" },
    { "18", "18" },
    { "12.", "12" },
    { "$18", "18" },
    { "It takes 3.5 hours", "3.5" },
    { "Janet makes 18 dollars on the 5th day.", "18" },
    { "So the total is \\(6 + 4 = 10\\).", "10" },
    { "```output\n1750\n```", "1750" },
    { "So Janet makes $18 per day at the market", "18" },
    /* Nothing is stated, or the text is cut. */
    { "", NULL },
    { "It cannot be said.", NULL },
    { "I do not know.", NULL },
    { "\\boxed{}", NULL },
    { "\\boxed{x}", NULL },
    { "1. Count the eggs.\n2. Sell the rest for", NULL },
    { "Step 2: 16 - 3 =", NULL },
    { "She sells 9 eggs. Then we multiply by", NULL },
    { "He earns $5. The time to earn $825,000 is \\(\\frac{825,000}{", NULL },
    { "```python\nx = 40\nprint(x)\n```\n```", NULL },
    /* What checks the answer is none, unless another one follows. */
    { "So he runs 3 * 60 = 180 meters.\n\nStep 4: Check. 180 / 3 = 60. Correct.", "180" },
    { "So x = 15.\nVerification: 15 * 3 = 45, and 45 + 5 = 50.", "15" },
    { "She has 8 left.\nTo check, 8 + 4 = 12, with which she began.", "8" },
    { "8 are left. Let's verify: 8 + 4 = 12.", "8" },
    { "8 are left.\nCheck: 8 + 4 =", "8" },
    { "3 boxes of 5. Let me check. 3 * 5 = 15. So she needs 15.", "15" },
    { "Step 2: check 10 - 4 = 6.\nSo 6 are left.", "6" },
    { "Let us check: 3 * 5 = 15.", "15" },
    { "Total = 5 + 7 = 12\nDouble-check: 12 - 7 = 5", "12" },
    { "He writes a check of $30.", "30" },
    { "5 flights.\nCheck-in costs 30 each, 150 in all.", "150" },
    /* Blanks between thousands, but not between numbers. */
    { "The answer is 1 234 567.", "1234567" },
    { "The answer is 1\xe2\x80\xaf"
      "234\xc2\xa0"
      "567 people.",
      "1234567" },
    { "#### 45 000", "45000" },
    { "The answer is 4 500.", "4500" },
    { "The answer is 10 20 30.", "10" },
    { "The answer is 3 500 ml bottles.", "3" },
    { "He has 12 345 apples.", "12345" },
    { "They sold 1 200 tickets in all.", "1200" },
    { "So 5 000-meter races.", "5000" },
    { "She ran 4 200-meter laps.", "200" },
    { "So she swims 10 100-meter laps.", "100" },
    { "In week 1 250, in week 2 300.", "300" },
    { "Chapter 3 100 pages; chapter 4 120.", "120" },
    { "So day 3 200 eggs.", "200" },
    { "It is 3 100/200.", "3.5" },
    /* Thousands, millions and powers of ten. */
    { "The answer is $1.5 million.", "1500000" },
    { "So the city has 2.3 billion.", "2300000000" },
    { "He pays 12 thousand dollars.", "12000" },
    { "The answer is 3 millions of them.", "3000000" },
    { "The answer is 1.5e3.", "1500" },
    { "\\boxed{2E4}", "20000" },
    { "Answer: 1.25e-2", "0.0125" },
    { "\\boxed{1.5 \\times 10^{3}}", "1500" },
    { "The answer is 5 eggs.", "5" },
};

static void check_label(const char *text, char want, const struct extract_choices *c)
{
    char found = extract_label(text, c);
    CHECK_MSG(found == want, "%s: expected %c, found %c", text, want ? want : '-',
              found ? found : '-');
}

static void check_number(const char *text, const char *want)
{
    char found[EXTRACT_NUMBER] = "", *copy = strdup(text); /* whatever is read beyond it is seen */
    CHECK(copy);
    bool any = extract_number(found, copy);
    free(copy);
    CHECK_MSG(any == !!want && (!any || !strcmp(found, want)), "%s: expected %s, found %s", text,
              want ? want : "-", any ? found : "-");
}

/* Choices that hide each other, are words of the form, or are sentences; digits for labels. */
static void other_choices(void)
{
    static const char *const digits[] = { "1", "2", "3", "4" };
    static const char *const hidden[] = { "mall", "farmer's market", "strip mall", "answer" };
    static const char *const lengths[] = { "2 m", "4 m", "It sinks.", "8 m" };
    const struct extract_choices a = { letters, hidden, 4 }, b = { digits, lengths, 4 };
    check_label("The answer is a strip mall.", 'C', &a);
    check_label("farmer’s market", 'B', &a);
    check_label("Therefore, the answer is answer (C).", 'C', &a);
    check_label("The answer is answer.", 'D', &a);
    check_label("The answer is (2).", '2', &b);
    check_label("3", '3', &b);
    check_label("The answer is 4 m.", '2', &b);
    check_label("It sinks", '3', &b);
    check_label("4.5", 0, &b);
}

/* A line of 64 KiB of this piece. */
static char *junk(const char *piece)
{
    size_t n = strlen(piece), size = ((size_t)1 << 16) / n * n;
    char *text = malloc(size + 1);
    CHECK(text);
    for (size_t i = 0; i < size; i += n)
        memcpy(text + i, piece, n);
    text[size] = 0;
    return text;
}

/* Time is linear in the text: a rule that scans ahead from each of these would take hours. */
static void long_texts(void)
{
    static const char *const pieces[] = { "a",  "a ", "answer ",   "answer is ", "Therefore",
                                          "(",  "#",  "#### ",     "\\boxed{",   "**1",
                                          "1,", "{",  "bank or ",  "\n",         "Question:\n",
                                          "}{", ". ", "Check. 1. " };
    clock_t before = clock();
    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        char number[EXTRACT_NUMBER], *text = junk(pieces[i]);
        size_t n;
        (void)extract_label(text, &choices);
        (void)extract_citer_label(text, &choices);
        (void)extract_citer_number(&n, text);
        (void)extract_number(number, text);
        free(text);
    }
    CHECK((double)(clock() - before) / CLOCKS_PER_SEC < 120);
}

/* Texts that are put together from what the rules look for and from any bytes. */
static void any_bytes(void)
{
    static const char *const pieces[] = {
        "answer", " is ",     "(",         ")",         "A",       "b", "bank",    "mall",
        " or ",   "\\boxed{", "}",         "####",      "**",      "1", ",",       ".",
        "\n",     "not ",     "\xe2\x80",  "\xff",      "é",       "=", "\\frac{", "$",
        "-",      "/",        "Therefore", "Question:", "Option ", " "
    };
    uint64_t seed = 7;
    for (size_t round = 0; round < 20000; round++) {
        char text[512] = "", number[EXTRACT_NUMBER] = "";
        size_t n = 0, m;
        for (size_t k = 0; k < 24; k++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            const char *piece = pieces[(seed >> 33) % (sizeof(pieces) / sizeof(pieces[0]))];
            memcpy(text + n, piece, strlen(piece));
            n += strlen(piece);
        }
        char *copy = malloc(n + 1); /* whatever is read beyond it is seen */
        CHECK(copy);
        memcpy(copy, text, n);
        copy[n] = 0;
        char label = extract_label(copy, &choices), citer = extract_citer_label(copy, &choices);
        const char *raw = extract_citer_number(&m, copy);
        CHECK((!label || (label >= 'A' && label <= 'E')) &&
              (!citer || (citer >= 'A' && citer <= 'Z')));
        CHECK(!raw || (raw > copy && raw + m <= copy + n));
        CHECK(!extract_number(number, copy) || (*number && strlen(number) < EXTRACT_NUMBER &&
                                                !number[strspn(number, "-0123456789.")]));
        free(copy);
    }
}

int main(void)
{
    CHECK(sizeof(labels) / sizeof(labels[0]) >= 60 && sizeof(numbers) / sizeof(numbers[0]) >= 60);
    for (size_t i = 0; i < sizeof(labels) / sizeof(labels[0]); i++)
        check_label(labels[i].text, labels[i].label, &choices);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
        check_number(numbers[i].text, numbers[i].number);
    other_choices();
    any_bytes();
    long_texts();
    return 0;
}
