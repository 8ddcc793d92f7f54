/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the text that `policy new` writes. A person's choices stand in it only as quoted scalars or
 * as names of existing presets, never in a comment. The whole text is loaded before anybody gets
 * it, with the reader that everybody uses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/policy/new.h"
#include "cli/policy/new_quote.h"

#define NEW_PATH "/new-policy.yaml" /* the path under which the text is loaded */
#define COMMENT_COLUMN 30

bool new_quote(struct slice text, char out[NEW_QUOTED_MAX])
{
	size_t n = 0;

	if (text.n > NEW_WORD_MAX)
		return false;
	out[n++] = '"';
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] < ' ' || text.p[i] > '~')
			return false;
		if (text.p[i] == '"' || text.p[i] == '\\')
			out[n++] = '\\';
		out[n++] = text.p[i];
	}
	out[n++] = '"';
	out[n] = '\0';
	return true;
}

static int read_text(void *context, const char *path, char **text, size_t *n)
{
	const struct slice *own = context;
	struct policy_reader files = policy_reader_files(NULL);

	if (strcmp(path, NEW_PATH) != 0)
		return files.read(NULL, path, text, n);
	*text = malloc(own->n + 1);
	if (!*text)
		return -ENOMEM;
	memcpy(*text, own->p, own->n);
	(*text)[own->n] = '\0';
	*n = own->n;
	return 0;
}

int new_text_load(struct slice text, struct diag_list *diags)
{
	struct policy_reader reader = {.context = &text,
	        .read = read_text,
	        .preset_dir = policy_default_preset_dir(),
	        .presets = policy_list_presets};
	uint8_t *image;
	size_t size;
	int rc = policy_load(&reader, NEW_PATH, NULL, &image, &size, diags);

	free(image);
	return rc;
}

/* The growing text. */
struct text {
	struct buf *out;
	bool failed;
};

#define ADD(t, ...) ((t)->failed |= buf_printf((t)->out, __VA_ARGS__) != 0)

/* Adds what the preset has a key for, and how to take the key from elsewhere. */
static void add_key(struct text *t, const struct new_preset *p)
{
	if (!p->has_key || !p->key_preset[0])
		return;
	ADD(t, "  # Its credential \"%s\" is taken from %s. From elsewhere:\n", p->key, p->source);
	ADD(t, "  # - {preset: %s, credentials: {%s: {source: \"file:/path/of/the/key\"}}}\n",
	        p->key_preset, p->key);
}

static void add_presets(
        struct text *t, const struct new_list *list, const struct new_presets *presets)
{
	for (size_t i = 0; i < list->count; i++) {
		const struct new_preset *p =
		        new_presets_get(presets, slice_from_string(list->words[i]));
		int n;

		if (!p)
			continue;
		n = snprintf(NULL, 0, "  - preset:%s", p->name);
		ADD(t, "  - preset:%s%*s# %s\n", p->name,
		        n < COMMENT_COLUMN ? COMMENT_COLUMN - n : 1, "", p->description);
		add_key(t, p);
	}
}

/* A preset that is chosen twice, as agent and as packages, is included once. */
static void drop_agents(struct new_list *packages, const struct new_list *agents)
{
	size_t kept = 0;

	for (size_t i = 0; i < packages->count; i++) {
		bool twice = false;

		for (size_t k = 0; k < agents->count; k++)
			twice |= strcmp(packages->words[i], agents->words[k]) == 0;
		if (!twice)
			memmove(packages->words[kept++], packages->words[i],
			        sizeof(packages->words[0]));
	}
	packages->count = kept;
}

static bool has_requests(const char *to)
{
	return strncmp(to, "tcp://", 6) != 0 && strncmp(to, "udp://", 6) != 0;
}

/* Adds one rule for hosts reached by HTTP or one for the others. */
static void add_hosts(struct text *t, const struct new_list *hosts, bool http)
{
	char quoted[NEW_QUOTED_MAX];
	bool begun = false;

	for (size_t i = 0; i < hosts->count; i++) {
		if (has_requests(hosts->words[i]) != http ||
		        !new_quote(slice_from_string(hosts->words[i]), quoted))
			continue;
		if (!begun)
			ADD(t, "  - name: %s\n    to:\n", http ? "my-hosts" : "my-ports");
		begun = true;
		ADD(t, "      - %s\n", quoted);
	}
	if (begun && http)
		ADD(t, "    methods: [GET, HEAD]      # reading; without this line every method "
		       "is allowed\n"
		       "    # paths: [/api/**]        # only these, where you can say which\n");
}

static void add_body(const struct new_choice *choice, const struct new_presets *presets,
        const struct new_list *packages, struct text *t)
{
	char name[NEW_QUOTED_MAX];

	new_quote(slice_from_string(choice->name), name);
	ADD(t,
	        "# Made by 'vethguard policy new'. What no rule here or in a preset allows is "
	        "refused.\n"
	        "# 'vethguard policy explain FILE METHOD URL' says what it decides, and why.\n"
	        "vethguard: 1\n"
	        "name: %s\n",
	        name);
	if (choice->agents.count + packages->count > 0)
		ADD(t, "\n# Rules that come with vethguard; they are short, read "
		       "them.\ninclude:\n");
	add_presets(t, &choice->agents, presets);
	add_presets(t, packages, presets);
	if (choice->hosts.count > 0)
		ADD(t, "\n# What may be reached besides.\nallow:\n");
	add_hosts(t, &choice->hosts, true);
	add_hosts(t, &choice->hosts, false);
	ADD(t, "\n# What is denied is refused whatever else allows it:\n"
	       "# deny:\n"
	       "#   - name: no-deletes\n"
	       "#     to: https://api.example.com\n"
	       "#     methods: [DELETE]\n"
	       "#     reason: Nothing is deleted from here.\n"
	       "\n");
	if (choice->mode == NEW_OBSERVE)
		ADD(t, "# Nothing is refused, only recorded, to find out what a program needs: "
		       "'vethguard audit\n"
		       "# suggest' turns the log into rules. Use it with hosts that you trust, "
		       "and end it with enforce.\n"
		       "mode: observe\n");
	else
		ADD(t, "mode: enforce   # observe lets everything pass and records what would "
		       "be refused\n");
}

bool new_text(const struct new_choice *choice, const struct new_presets *presets, struct buf *out)
{
	static struct new_list packages;
	static struct diag_list diags;
	struct text t = {.out = out};
	int rc;

	packages = choice->packages;
	drop_agents(&packages, &choice->agents);
	add_body(choice, presets, &packages, &t);
	if (t.failed) {
		fputs("vethguard: error: the policy grows too large\n", stderr);
		return false;
	}
	diags.count = diags.dropped = 0;
	rc = new_text_load(buf_slice(out), &diags);
	if (rc == 0)
		return true;
	fputs("vethguard: error: what was chosen makes no policy:\n", stderr);
	diag_print(&diags, stderr);
	if (diags.count == 0)
		fprintf(stderr, "%s\n", strerror(-rc));
	return false;
}
