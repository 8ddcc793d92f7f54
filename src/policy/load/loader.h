/* SPDX-License-Identifier: Apache-2.0 */
/* loader: what the parts of the loader share. load.c drives: files, then credentials and groups,
 * then rules. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_LOADER_H
#define VETHGUARD_SRC_POLICY_LOAD_LOADER_H

#include "vethguard/policy/load.h"
#include "vethguard/policy/url.h"
#include "policy/load/model.h"
#include "policy/load/yaml_tree.h"

/* One file, read and parsed. */
struct load_file {
	struct tree tree;
	struct slice path;
	struct slice label; /* put before default rule names; empty for the main file */
	bool is_preset;     /* included as preset:LABEL */
};

/* What an include says of a credential of the file that it includes. */
struct load_override {
	size_t from;                  /* index of the file that says it */
	struct slice path, shown;     /* of the file it is about, and as written */
	const struct tree_item *item; /* the credential's name, and {source: ...} */
};

struct load_group {
	struct mark mark;
	struct model_destinations destinations;
};

#define LOAD_VARIABLES_MAX (2 * POLICY_VARIABLES_MAX) /* given and declared, of all files */
#define LOAD_DESTINATION_MAX 512                      /* bytes, with its variables replaced */

struct load_variable {
	struct slice name;
	struct slice value; /* empty: none yet */
	struct mark mark;   /* of the declaration */
	bool given, declared, used;
};

struct loader {
	const struct policy_reader *reader;
	struct arena arena;
	struct model model;
	struct vec files;      /* struct load_file */
	struct vec groups;     /* struct load_group, by number of the name */
	struct vec name_rules; /* uint32_t: the rule that has name N */
	struct vec overrides;  /* struct load_override */
	size_t variable_count;
	struct load_variable variables[LOAD_VARIABLES_MAX];
	const struct policy_load_options *options; /* or NULL */
	struct intern paths, group_names, rule_names, credential_names;
	bool wrong; /* something was reported */
};

static inline struct mark mark_of(const struct tree *tree, const struct tree_node *node)
{
	return (struct mark){tree->file, node->line, node->column};
}

/* A name that people choose: letters, digits, '.', '_', '-', at most POLICY_NAME_MAX. Reports. */
bool load_name(
        struct tree *tree, const struct tree_node *node, const char *what, struct slice *out);
/* "dir/of/file" joined with a relative path, without "." and ".." inside; an absolute path as it
 * is. */
struct slice load_join(struct arena *arena, struct slice file, struct slice relative);
/* path behind the working directory, unless it is absolute already. */
struct slice load_absolute(struct arena *arena, const char *path);
/* One destination as written in `to`: how many it is, in out, or 0, which is reported. "[public]"
 * is two: every IPv4 and every IPv6 address. */
#define LOAD_DESTINATIONS_EACH 2
size_t load_destination(struct loader *l, struct tree *tree, const struct tree_node *node,
        struct model_destination out[LOAD_DESTINATIONS_EACH]);
/* An RFC 9110 token. */
bool load_is_token(struct slice s);

/* Reads the main file and all that it includes. -ENOMEM; faults are reported. */
int load_all_files(struct loader *l, const char *path);
/* The presets that there are, as far as is known: names, ending with NULL, in room. */
struct load_presets {
	struct policy_presets found;
	const char *names[POLICY_PRESETS_MAX + 1];
};
const char *const *load_preset_names(const struct loader *l, struct load_presets *room);

/* One entry of include:, taken apart. */
struct load_include {
	struct slice text;                   /* as in a message: "preset:NAME", or the path */
	struct slice preset;                 /* its name; empty: a file */
	const struct tree_node *node;        /* what to report about */
	const struct tree_node *credentials; /* what it says of the file's credentials, or NULL */
};
/* False: reported. */
bool load_include_entry(struct loader *l, struct tree *tree, const struct tree_node *node,
        struct load_include *out);
/* Remembers what the include of path says of its credentials. Reports. */
void load_overrides_keep(struct loader *l, struct tree *tree, size_t from,
        const struct load_include *include, struct slice path);
/* After all credentials are loaded: puts the overrides in force. Reports. */
void load_overrides_apply(struct loader *l);
/* Each reports what is wrong and goes on; -ENOMEM only through arena.failed. */
/* The shape of the placeholder of a credential whose variable is known: load/placeholder.c. */
void load_placeholder(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out);
void load_credentials(struct loader *l, struct load_file *file);
void load_rules(struct loader *l, struct load_file *file, bool deny);

#endif
