/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: YAML policy files to compiled images, with errors that name file, line, column, the offending text and what
 * would be right. A load that fails yields nothing.
 */
#ifndef VETHGUARD_POLICY_LOAD_H
#define VETHGUARD_POLICY_LOAD_H

#include "vethguard/base/diag.h"
#include "vethguard/policy/policy.h"
#include "vethguard/policy/writers.h"

#define POLICY_FILE_MAX (64u << 20)  /* bytes of one file */
#define POLICY_INCLUDE_DEPTH_MAX 16
#define POLICY_INCLUDE_FILES_MAX 256

#define POLICY_PRESETS_MAX 128 /* names told of one directory */

struct policy_presets {
	size_t count;
	char names[POLICY_PRESETS_MAX][POLICY_NAME_MAX + 1]; /* sorted */
};
/* The presets in a directory: its files NAME.yaml. None where it cannot be read. */
void policy_list_presets(const char *directory, struct policy_presets *out);
/* Small letters, digits and '-', at most POLICY_NAME_MAX. */
bool policy_is_preset_name(struct slice name);

/* How the loader reads files: it does no I/O itself, so that it can be fuzzed and used anywhere. */
struct policy_reader {
	void *context;
	/* Reads path whole into *text (malloc'd, caller frees, NUL-terminated after n bytes). 0 or -errno. */
	int (*read)(void *context, const char *path, char **text, size_t *n);
	const char *preset_dir; /* where "preset:NAME" is looked up, as NAME.yaml */
	/* Whether the file that was read last is kept from everybody but its reader: a regular file of root's or of the
	 * reading user's, without any right of group and others. NULL: no. Asked of configurations that hold a password. */
	bool (*is_private)(void *context);
	/* Who else can change the file that was read last, for a note. Borrowed until the next one is read. NULL: nobody, or
	 * it is not known; and so for presets, which come with the program. */
	const struct policy_writers *(*writers)(void *context);
	/* policy_list_presets(), for a message about a preset that is not there. NULL: the caller may not wait for a
	 * directory; the message names the presets that this version comes with. */
	void (*presets)(const char *directory, struct policy_presets *out);
};

/* What policy_reader_files() tells of the file read last, where its context points to one. */
struct policy_file_facts {
	uint32_t owner;
	bool closed; /* neither its group nor others have any right */
	struct policy_writers writers;
};
/* The reader that opens real files, and calls those of root's or of its own user's private; facts is borrowed. */
struct policy_reader policy_reader_private_files(const char *preset_dir, struct policy_file_facts *facts);

/* The reader that opens real files (bounded, regular files only). */
struct policy_reader policy_reader_files(const char *preset_dir);
/* The same, which tells of files that everybody or a group can change, for whoever only looks at a policy: it may be
 * another user who will use it, so owners do not count. facts is borrowed. */
struct policy_reader policy_reader_watchful_files(const char *preset_dir, struct policy_file_facts *facts);
/* What such a reader does with a file that is open already. 0 or -errno. Whose the file is and who has rights is told in
 * facts (NULL: nobody asks), of the directories above nothing. */
int policy_read_open_file(int fd, char **text, size_t *n, struct policy_file_facts *facts);
/* Where presets are: policies/presets of the source tree when the running program lies in its build/ folder, else
 * VETHGUARD_DATADIR "/presets". The environment is not asked: it may be hostile. */
const char *policy_default_preset_dir(void);

/* Variables: "${name}" in a destination's host or in a path is replaced by the value of that name, given here or as
 * the default of the policy's own variables:. A value is plain text that can only fill the place it was written for:
 * in a host whole labels or a part of one, in a path whole segments or a part of one. It becomes no wildcard,
 * address, port, scheme or escape. */
#define POLICY_VARIABLES_MAX 64       /* given at once, and declared in one policy */
#define POLICY_VARIABLE_NAME_MAX 64   /* bytes: letters, digits, '_', first a letter */
#define POLICY_VARIABLE_VALUE_MAX 256 /* bytes, at least one */

struct policy_variable {
	struct slice name, value;
};

/* Why this can be no variable, whatever policy it is for, as a text that goes behind the variable's name ("a value has
 * ..."); NULL where it can. policy_load() asks this itself; callers ask to tell their user earlier. */
const char *policy_variable_objection(struct slice name, struct slice value);
/* "name=value" taken apart at the first '='; false without one. Borrows text. */
bool policy_variable_split(struct slice text, struct policy_variable *out);

/* A host that an allow rule names exactly, and where. */
struct policy_host_place {
	struct slice host; /* canonical */
	enum policy_scheme scheme;
	uint16_t port; /* the rule's first one */
	const char *file;
	unsigned line, column;
};

struct policy_load_options {
	bool observe; /* mode: observe whatever the file says (--observe) */
	const struct policy_variable *variables; /* borrowed; names differ */
	size_t variable_count;
	struct diag_list *notes; /* what is no fault but probably not meant: a variable that is given and not used; NULL:
	                            nobody asks. Filled only where the load succeeds. */
	bool thorough; /* notes tell as well of what may be meant after all, and of rules that decide no request, which is some
	                * work in a large policy: for whoever asks what is to be thought of a policy */
	/* Called for each credential of a policy that has loaded, with where its source is written: for whoever wants to
	 * look whether there is a value. What it is given is borrowed for the call. NULL: nobody asks. */
	void (*each_source)(void *context, const struct policy_credential *credential, const char *file, unsigned line,
		unsigned column);
	void *each_source_context;
	/* Called for each host that allow rules of a policy that has loaded name exactly, as often as they name it. Borrowed
	 * for the call. NULL: nobody asks. */
	void (*each_host)(void *context, const struct policy_host_place *place);
	void *each_host_context;
	/* Called for each file before it is read, with its absolute path, the main file first: for whoever watches them.
	 * NULL: nobody asks. */
	void (*each_file)(void *context, const char *path);
	void *each_file_context;
};

/* Loads and compiles. On success *image is malloc'd (caller frees), *size its bytes. -EINVAL: diags say why (at least
 * one message); -ENOMEM. */
int policy_load(const struct policy_reader *reader, const char *path, const struct policy_load_options *options,
	uint8_t **image, size_t *size, struct diag_list *diags);

#endif
