/* SPDX-License-Identifier: Apache-2.0 */
/* loader: shared by the parts of the loader. load.c runs them: files, then credentials and groups,
 * then rules. */
#ifndef VETHGUARD_SRC_POLICY_LOAD_LOADER_H
#define VETHGUARD_SRC_POLICY_LOAD_LOADER_H

#include "vethguard/policy/load.h"
#include "vethguard/policy/url.h"
#include "policy/load/model.h"
#include "policy/yaml/yaml_tree.h"

/* One file, read and parsed. */
struct load_file {
	struct tree tree;
	struct slice path;
	struct slice label; /* put before default rule names; empty for the main file */
	bool is_preset;     /* included as preset:LABEL */
};

/* What an include says about a credential of the included file. */
struct load_override {
	size_t from;                  /* index of the including file */
	struct slice path, shown;     /* of the included file: resolved, and as written */
	const struct tree_item *item; /* the credential's name and {source: ...} */
};

struct load_group {
	struct mark mark;
	struct model_destinations destinations;
};

#define LOAD_VARIABLES_MAX (2 * POLICY_VARIABLES_MAX) /* given and declared, of all files */
#define LOAD_DESTINATION_MAX 512                      /* bytes, after its variables are replaced */

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
	struct vec groups;     /* struct load_group; the index is the number of its name */
	struct vec name_rules; /* uint32_t: the rule with name N */
	struct vec overrides;  /* struct load_override */
	size_t variable_count;
	struct load_variable variables[LOAD_VARIABLES_MAX];
	const struct policy_load_options *options; /* or NULL */
	struct intern paths, group_names, rule_names, credential_names;
	struct load_file floor; /* its tree has no root: there is no floor */
	struct vec floor_rules; /* struct model_rule: the floor's allow rules */
	bool bounded;           /* the floor has allow:, perhaps with an empty list */
	size_t infrastructure;  /* how many of the model's first rules are the infrastructure's
	                           rules and the floor's deny rules */
	bool wrong;             /* a fault was reported */
};

static inline struct mark mark_of(const struct tree *tree, const struct tree_node *node)
{
	return (struct mark){tree->file, node->line, node->column};
}

/* Reads a name that people choose: letters, digits, '.', '_', '-', at most POLICY_NAME_MAX. Reports
 * faults. */
bool load_name(
        struct tree *tree, const struct tree_node *node, const char *what, struct slice *out);
/* Joins "dir/of/file" with a relative path, without "." and ".." inside; returns an absolute path
 * unchanged. */
struct slice load_join(struct arena *arena, struct slice file, struct slice relative);
/* Joins the working directory and path, unless path is absolute already. */
struct slice load_absolute(struct arena *arena, const char *path);
/* Reads one destination as written in `to` into out. Returns how many it makes, or 0 after a
 * report. "[public]" makes two: every IPv4 and every IPv6 address. */
#define LOAD_DESTINATIONS_EACH 2
size_t load_destination(struct loader *l, struct tree *tree, const struct tree_node *node,
        struct model_destination out[LOAD_DESTINATIONS_EACH]);
/* True if s is an RFC 9110 token. */
bool load_is_token(struct slice s);
/* False for fields that frame the message or control the connection: the proxy writes them anew. */
bool load_header_is_free(struct slice name);

/* Reads the main file and everything it includes. Returns 0 or -ENOMEM; faults are reported. */
int load_all_files(struct loader *l, const char *path);
/* The presets that exist, as far as known: names, ending with NULL, stored in room. */
struct load_presets {
	struct policy_presets found;
	const char *names[POLICY_PRESETS_MAX + 1];
};
const char *const *load_preset_names(const struct loader *l, struct load_presets *room);
/* True if vethguard comes with a preset of this name, whether or not the directory has it. */
bool load_comes_with_preset(struct slice name);

/* One entry of include:, parsed. */
struct load_include {
	struct slice text;                   /* as in a message: "preset:NAME", or the path */
	struct slice preset;                 /* its name; empty: a file */
	const struct tree_node *node;        /* where to report faults */
	const struct tree_node *credentials; /* what the entry says about the file's credentials,
	                                        or NULL */
};
/* False: reported. */
bool load_include_entry(struct loader *l, struct tree *tree, const struct tree_node *node,
        struct load_include *out);
/* Keeps what the include of path says about its credentials. Reports faults. */
void load_overrides_keep(struct loader *l, struct tree *tree, size_t from,
        const struct load_include *include, struct slice path);
/* Call after all credentials are loaded: applies the overrides. Reports faults. */
void load_overrides_apply(struct loader *l);
/* Each function below reports faults and goes on; running out of memory only sets arena.failed. */
/* load/floor.c: reads the floor's file, its rules and limits. Call this before anything else is
 * read, so that nothing of a policy has a meaning in it. Returns 0 or -ENOMEM; faults are reported.
 */
int load_floor(struct loader *l);
/* Applies the floor's defaults: mode, inspect, on_leak, dlp and internal, over which load_top() of
 * the main file writes, and limits and budget, each only if the main file has none. */
void load_floor_defaults(struct loader *l, const struct tree_node *main);
/* Compiles the parts of the floor that are images of their own. Returns what policy_compile() does.
 */
int load_floor_compile(struct loader *l);
/* load/top.c: reads mode, inspect, on_leak, dlp and internal of a mapping, if it has them. */
void load_top(struct loader *l, struct tree *tree, const struct tree_node *map);
/* load/files.c: checks "vethguard: 1". */
void load_check_version(struct tree *tree);
/* load/expose.c: reads the ports that the file publishes. */
void load_exposes(struct loader *l, struct load_file *file);

#endif
