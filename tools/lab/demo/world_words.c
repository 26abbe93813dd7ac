#include "tools/lab/demo/world_internal.h"

/* No kind begins with a vowel, so that its article is "a"; no word contains another, so that a word
 * can be searched for. Eight kinds in a row are a group. */
const struct world_kind_row world_kinds[WORLD_KINDS] = {
    { "flower", "flowers", "garden", "meadow" },
    { "fish", "fish", "lake", "ocean" },
    { "tree", "trees", "forest", NULL },
    { "goat", "goats", "meadow", NULL },
    { "frog", "frogs", "swamp", NULL },
    { "snake", "snakes", "desert", NULL },
    { "bat", "bats", "cave", NULL },
    { "fox", "foxes", "valley", NULL },
    { "parrot", "parrots", "jungle", NULL },
    { "whale", "whales", "ocean", NULL },
    { "duck", "ducks", "pond", NULL },
    { "horse", "horses", "stable", NULL },
    { "cow", "cows", "barn", NULL },
    { "bench", "benches", "park", NULL },
    { "ship", "ships", "harbor", NULL },
    { "train", "trains", "station", NULL },
    { "tool", "tools", "garage", NULL },
    { "book", "books", "library", NULL },
    { "spice", "spices", "kitchen", NULL },
    { "coin", "coins", "bank", NULL },
    { "candle", "candles", "church", NULL },
    { "sword", "swords", "castle", NULL },
    { "fruit", "fruits", "market", NULL },
    { "pencil", "pencils", "school", NULL },
    { "statue", "statues", "museum", NULL },
    { "bell", "bells", "tower", NULL },
    { "wine", "wines", "cellar", NULL },
    { "pill", "pills", "hospital", NULL },
    { "machine", "machines", "factory", NULL },
    { "costume", "costumes", "theater", NULL },
    { "cake", "cakes", "bakery", NULL },
    { "coat", "coats", "closet", NULL },
};

const char *const world_narrators[WORLD_NARRATORS] = {
    "Tom",   "Ann",  "Ben",  "Eva",  "Max",  "Zoe",  "Sam",  "Mia",   "Leo",  "Ida",
    "Ray",   "Amy",  "Jim",  "Una",  "Ned",  "Kay",  "Rob",  "Fay",   "Gus",  "Liz",
    "Dan",   "Meg",  "Hal",  "Joy",  "Ian",  "Sue",  "Ken",  "Pam",   "Ted",  "Nan",
    "Paul",  "Rosa", "Carl", "Lucy", "Fred", "Jane", "Hugo", "Nora",  "Otto", "Vera",
    "Adam",  "Ella", "Bill", "Ruth", "Dirk", "Gail", "Earl", "Hope",  "Kurt", "Iris",
    "Glenn", "Lois", "Mark", "Olga", "Neil", "Tess", "Owen", "Wendy", "Yuri", "Quinn",
};

const char *const world_adjectives[WORLD_ADJECTIVES] = {
    "old",   "young", "calm", "quiet", "happy", "gentle", "proud", "clever", "brave", "kind",
    "tired", "merry", "shy",  "wise",  "bold",  "quick",  "slow",  "funny",  "neat",  "warm",
};

const char *const world_words[WORLD_WORDS] = {
    "acid",  "apple",  "bread", "bridge", "chair", "cloud", "dance", "dream",  "eagle", "earth",
    "fence", "flame",  "glass", "grass",  "heart", "honey", "inch",  "island", "jewel", "juice",
    "knife", "ladder", "lemon", "mirror", "mouse", "night", "noise", "ocher",  "onion", "paper",
    "piano", "queen",  "river", "salt",   "table", "uncle", "voice", "water",  "yard",  "zebra",
};

const char world_letters[WORLD_CHOICES][2] = { "A", "B", "C", "D", "E" };
