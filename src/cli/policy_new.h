/* SPDX-License-Identifier: Apache-2.0 */
/* policy_new: the parts of `vethguard policy new`: what is chosen, the presets to choose from, the
 * questions on a terminal, and the text that is written. */
#ifndef CLI_POLICY_NEW_H
#define CLI_POLICY_NEW_H

#include "vethguard/base/buf.h"
#include "vethguard/base/diag.h"
#include "vethguard/policy/load.h"

#define NEW_CHOICES_MAX 32      /* of agents, of packages and of hosts each */
#define NEW_ANSWER_MAX 1024     /* bytes of an answer, without its line break */
#define NEW_WORD_MAX 512        /* bytes of one choice */
#define NEW_DESCRIPTION_MAX 100 /* bytes of a preset's first line that are shown */
#define NEW_TEXT_MAX (128u << 10)

/* One preset. */
struct new_preset {
	char name[POLICY_NAME_MAX + 1];
	char fault[DIAG_MESSAGE_MAX];              /* why it cannot be used as it is; "": it can */
	char description[NEW_DESCRIPTION_MAX + 1]; /* printable ASCII; may be empty */
	bool has_key;                              /* it has credentials */
	bool for_agents;                      /* and model's APIs; else for packages and the like */
	char key[POLICY_NAME_MAX + 1];        /* the first of them */
	char key_preset[POLICY_NAME_MAX + 1]; /* the preset that defines it; "": unknown */
	char source[POLICY_SOURCE_TEXT_MAX];  /* where its value comes from */
};

struct new_presets {
	struct new_preset *items; /* owned */
	size_t count;
	const char *directory; /* borrowed */
};

/* Looks at all presets of the installation. False: no memory. */
bool new_presets_find(struct new_presets *presets);
void new_presets_free(struct new_presets *presets);
/* NULL: there is none of that name. It may have a fault. */
const struct new_preset *new_presets_get(const struct new_presets *presets, struct slice name);
/* Those of one kind that can be used: their names, ending with NULL. Returns how many. keys: for
 * agents, else the others. */
size_t new_presets_names(
        const struct new_presets *presets, bool keys, const char *names[POLICY_PRESETS_MAX + 1]);
/* What a message about a wrong name says behind it: "; did you mean ...". keys: of those for
 * agents only, else of the others. */
const char *new_presets_hint(
        const struct new_presets *presets, struct slice name, bool keys, char out[DIAG_HINT_MAX]);

struct new_list {
	size_t count;
	char words[NEW_CHOICES_MAX][NEW_WORD_MAX + 1];
};

enum new_mode { NEW_MODE_UNSAID, NEW_ENFORCE, NEW_OBSERVE };

struct new_choice {
	struct new_list agents, packages, hosts;
	char name[POLICY_NAME_MAX + 1]; /* "": not said */
	enum new_mode mode;
	char output[4096]; /* "": not said; "-": the standard output */
};

/* Each takes what a person wrote, several parted by spaces or commas, and says on stderr what is
 * wrong with it, behind "what: ". False then; nothing of it is taken. */
bool new_take_presets(struct new_list *list, const struct new_presets *presets, bool keys,
        const char *what, struct slice text);
bool new_take_hosts(struct new_list *list, const char *what, struct slice text);
bool new_take_name(struct new_choice *choice, const char *what, struct slice text);
bool new_take_mode(struct new_choice *choice, const char *what, struct slice text);
bool new_take_output(struct new_choice *choice, const char *what, struct slice text);

/* Asks on stderr for what is not chosen yet, and reads answers from stdin. False: there is no
 * answer any more, or too many were wrong. */
bool new_ask(struct new_choice *choice, const struct new_presets *presets);

/* Writes the policy, and loads it to see that it is right. False: reported on stderr. */
bool new_text(const struct new_choice *choice, const struct new_presets *presets, struct buf *out);
/* Loads a text as a policy, without notes. 0 or an error with diags. */
int new_text_load(struct slice text, struct diag_list *diags);

#endif
