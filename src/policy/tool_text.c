/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a list of tools goes into a model's context word for word, so what it says
 * of a tool can speak to the model behind the user's back. This file looks through each text that a
 * list has about a tool for a few shapes of such speech: invisible and control characters, marks,
 * names of files, and orders. For orders, a text is read as words in small letters, without the
 * signs between them. A description that speaks in other words is not found.
 */

#include "vethguard/policy/tools.h"

#include "vethguard/policy/json.h"

#define WORD_MAX 24 /* bytes of a word that is looked at; longer ones are cut */
#define WINDOW 12   /* words that are looked at together */

struct words {
	char text[WINDOW][WORD_MAX + 1]; /* a ring */
	unsigned count;                  /* of all words so far */
};

static const char *const skips[] = {
        "ignore", "disregard", "forget", "override", "bypass", "overrule", NULL};
static const char *const others[] = {"all", "any", "previous", "prior", "above", "earlier", "other",
        "preceding", "existing", "your", "system", "safety", NULL};
static const char *const orders[] = {"instruction", "instructions", "rules", "guidelines", "prompt",
        "prompts", "restrictions", "directives", "policies", NULL};
static const char *const nots[] = {
        "not", "don't", "don\xe2\x80\x99t", "dont", "never", "without", "avoid", NULL};
static const char *const tells[] = {"tell", "telling", "mention", "mentioning", "inform",
        "informing", "notify", "notifying", "reveal", "revealing", "disclose", "disclosing",
        "alert", "alerting", NULL};
static const char *const persons[] = {"user", "users", "human", "person", "operator", NULL};
static const char *const froms[] = {"from", NULL};
static const char *const hides[] = {"hide", "hidden", "conceal", "secret", "secretly", NULL};

static bool is_one_of(const char *word, const char *const list[])
{
	for (size_t i = 0; list[i]; i++)
		if (strcmp(word, list[i]) == 0)
			return true;
	return false;
}

/* Returns the word `back` words before the last one, or "". */
static const char *word_at(const struct words *w, unsigned back)
{
	return back < w->count && back < WINDOW ? w->text[(w->count - 1 - back) % WINDOW] : "";
}

/* True if one of the words `from` to `to` before the last one is in the list. *where: which. */
static bool has_before(const struct words *w, unsigned from, unsigned to, const char *const list[],
        unsigned *where)
{
	for (unsigned i = from; i <= to; i++)
		if (is_one_of(word_at(w, i), list)) {
			*where = i;
			return true;
		}
	return false;
}

/* Looks at the words that end with the last one. Returns what they do, or NULL. */
static const char *decide(const struct words *w)
{
	const char *last = word_at(w, 0);
	unsigned at, before;

	if (is_one_of(last, orders) && has_before(w, 1, 6, skips, &at) && at > 1 &&
	        has_before(w, 1, at - 1, others, &before))
		return "tells the model to ignore other instructions";
	if (!is_one_of(last, persons))
		return NULL;
	if (has_before(w, 1, 6, tells, &at) && has_before(w, at + 1, at + 3, nots, &before))
		return "tells the model not to tell the user";
	if (has_before(w, 1, 5, hides, &at) && has_before(w, 1, 2, froms, &before))
		return "tells the model to hide something from the user";
	return NULL;
}

/* --- characters --- */

/* True for characters that no reader sees, but a model does: tags, direction marks, spaces without
 * width. Joiners and variation selectors are parts of emoji and of some scripts. */
static bool is_invisible(uint32_t c)
{
	return (c >= 0xe0000 && c <= 0xe007f) || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069) || c == 0x200b || c == 0x2060 || c == 0xfeff ||
	       c == 0x180e || c == 0x00ad;
}

/* Decodes the first character of a text that json_read() has found to be UTF-8. Returns how many
 * bytes it has. */
static size_t decode(struct slice text, uint32_t *out)
{
	uint8_t first = (uint8_t)text.p[0];
	size_t n = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	*out = n == 1 ? first : first & (0x7fu >> n);
	for (size_t i = 1; i < n && i < text.n; i++)
		*out = *out << 6 | ((uint8_t)text.p[i] & 0x3f);
	return n < text.n ? n : text.n;
}

static bool is_control(uint32_t c)
{
	return (c < ' ' && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
}

static const char *end_word(struct words *w, size_t *n)
{
	if (*n == 0)
		return NULL;
	w->text[w->count % WINDOW][*n] = '\0';
	w->count++;
	*n = 0;
	return decide(w);
}

static bool is_letter(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\'' || c >= 0x80;
}

/* Reads a text as words. Returns what is found first, or NULL. */
static const char *look_at_words(struct slice text)
{
	struct words w = {.count = 0};
	const char *found = NULL;
	size_t n = 0;

	for (size_t i = 0; !found && i < text.n; i++) {
		uint8_t c = (uint8_t)text.p[i];

		c = c >= 'A' && c <= 'Z' ? (uint8_t)(c + 'a' - 'A') : c;
		if (!is_letter(c))
			found = end_word(&w, &n);
		else if (n < WORD_MAX)
			w.text[w.count % WINDOW][n++] = (char)c;
	}
	return found ? found : end_word(&w, &n);
}

static const char *look_at_characters(struct slice text)
{
	for (size_t i = 0; i < text.n;) {
		uint32_t c;
		size_t n = decode(slice_of(text.p + i, text.n - i), &c);

		if (is_invisible(c))
			return "has invisible characters";
		if (is_control(c))
			return "has control characters";
		i += n;
	}
	return NULL;
}

static bool contains(struct slice text, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= text.n; i++)
		if (slice_equals_ignoring_case(slice_of(text.p + i, n), slice_of(word, n)))
			return true;
	return false;
}

static const char *look_at_marks(struct slice text)
{
	static const char *const marks[] = {"<important>", "<system>", "</system>", "<|im_start|>",
	        "[inst]", "<<sys>>", "<secret>", "<!--", NULL};
	static const char *const files[] = {"~/.ssh", "id_rsa", "id_ed25519", ".aws/credentials",
	        "/etc/shadow", ".kube/config", NULL};

	for (size_t i = 0; marks[i]; i++)
		if (contains(text, marks[i]))
			return "has marks by which prompts are divided";
	for (size_t i = 0; files[i]; i++)
		if (contains(text, files[i]))
			return "names files in which keys are kept";
	return NULL;
}

static const char *look_at_text(struct slice text)
{
	const char *found;

	if (text.n > TOOL_TEXT_MAX)
		return "has a text of more than 64 KiB";
	found = look_at_characters(text);
	found = found ? found : look_at_marks(text);
	return found ? found : look_at_words(text);
}

const char *policy_tool_instructs(const struct json_tree *tree, const struct json_value *tool)
{
	const char *found = NULL;

	for (uint32_t i = (uint32_t)(tool - tree->values); !found && i < tool->next; i++) {
		const struct json_value *v = json_at(tree, i);

		if (v->kind == JSON_IS_STRING || v->kind == JSON_IS_KEY)
			found = look_at_text(json_text(tree, v));
	}
	return found;
}
