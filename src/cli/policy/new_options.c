/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks what a person chose, by options or as answers, word by word, so that each message is about
 * the written word. The loader itself judges hosts and names: each is loaded in a policy of its
 * own, quoted as it will be in the text.
 */
#include <stdio.h>

#include "cli/policy/new.h"
#include "cli/policy/new_quote.h"

#define SHOWN_MAX 200
#define ONE_MAX (4 * NEW_WORD_MAX + 128)

static bool complain(const char *what, struct slice word, const char *why, const char *more)
{
	char shown[SHOWN_MAX];

	fprintf(stderr, "vethguard: error: %s: \"%s\" %s%s\n", what,
	        slice_escape(word, shown, sizeof(shown)), why, more);
	return false;
}

static bool is_border(char c)
{
	return c == ' ' || c == ',' || c == '\t';
}

/* Takes the next word off text. Returns an empty slice if there is none. */
static struct slice next_word(struct slice *text)
{
	struct slice word;
	size_t n = 0;

	while (text->n > 0 && is_border(text->p[0]))
		*text = slice_of(text->p + 1, text->n - 1);
	while (n < text->n && !is_border(text->p[n]))
		n++;
	word = slice_of(text->p, n);
	*text = slice_of(text->p + n, text->n - n);
	return word;
}

/* Adds a word; a repeated word counts once. */
static bool add(struct new_list *list, const char *what, struct slice word)
{
	for (size_t i = 0; i < list->count; i++)
		if (slice_equals(word, slice_from_string(list->words[i])))
			return true;
	if (word.n > NEW_WORD_MAX)
		return complain(what, word, "is too long", "");
	if (list->count == NEW_CHOICES_MAX)
		return complain(what, word,
		        "is too many: 32 are possible; write the others into the file", "");
	memcpy(list->words[list->count], word.p, word.n);
	list->words[list->count++][word.n] = '\0';
	return true;
}

bool new_take_presets(struct new_list *list, const struct new_presets *presets, bool keys,
        const char *what, struct slice text)
{
	struct new_list taken = *list;
	char hint[DIAG_HINT_MAX];
	struct slice word;

	while ((word = next_word(&text)).n > 0) {
		const struct new_preset *preset;

		if (slice_starts_with(word, SLICE("preset:")))
			word = slice_of(word.p + 7, word.n - 7);
		preset = new_presets_get(presets, word);
		if (!preset)
			return complain(what, word, "is not a preset",
			        new_presets_hint(presets, word, keys, hint));
		if (preset->fault[0])
			return complain(what, word, "has to be included by hand: ", preset->fault);
		if (!add(&taken, what, word))
			return false;
	}
	*list = taken;
	return true;
}

/* True if the loader accepts the quoted word between before and after. */
static bool loads(const char *what, struct slice word, const char *before, const char *after)
{
	static struct diag_list diags;
	char quoted[NEW_QUOTED_MAX], text[ONE_MAX];

	if (word.n > NEW_WORD_MAX)
		return complain(what, word, "is too long", "");
	if (!new_quote(word, quoted))
		return complain(what, word, "has other bytes than printable ASCII", "");
	snprintf(text, sizeof(text), "vethguard: 1\n%s%s%s\n", before, quoted, after);
	diags.count = diags.dropped = 0;
	if (new_text_load(slice_from_string(text), &diags) == 0)
		return true;
	fprintf(stderr, "vethguard: error: %s: %s\n", what,
	        diags.count ? diags.items[0].message : "not enough memory");
	return false;
}

bool new_take_hosts(struct new_list *list, const char *what, struct slice text)
{
	struct new_list taken = *list;
	struct slice word;

	while ((word = next_word(&text)).n > 0)
		if (!loads(what, word, "allow:\n  - to: ", "") || !add(&taken, what, word))
			return false;
	*list = taken;
	return true;
}

bool new_take_name(struct new_choice *choice, const char *what, struct slice text)
{
	if (text.n > POLICY_NAME_MAX)
		return complain(what, text, "is too long: a name has 64 bytes at most", "");
	if (!loads(what, text, "name: ", ""))
		return false;
	snprintf(choice->name, sizeof(choice->name), "%.*s", SLICE_ARG(text));
	return true;
}

bool new_take_mode(struct new_choice *choice, const char *what, struct slice text)
{
	static const char *const modes[] = {"enforce", "observe", NULL};
	const struct diag_known known = {modes, "there are", NULL, NULL};
	char hint[DIAG_HINT_MAX];

	if (slice_equals(text, SLICE("enforce")))
		choice->mode = NEW_ENFORCE;
	else if (slice_equals(text, SLICE("observe")))
		choice->mode = NEW_OBSERVE;
	else
		return complain(what, text, "is not a mode", diag_hint(text, &known, hint));
	return true;
}

bool new_take_output(struct new_choice *choice, const char *what, struct slice text)
{
	if (text.n == 0)
		return complain(what, text, "is not a file's name", "");
	if (text.n >= sizeof(choice->output))
		return complain(what, text, "is too long", "");
	memcpy(choice->output, text.p, text.n);
	choice->output[text.n] = '\0';
	return true;
}
