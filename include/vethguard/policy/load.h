/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load: compiles YAML policy files to images. Errors name file, line and column, quote the offending text and say
 * what would be right. A load that fails yields nothing.
 */
#ifndef VETHGUARD_POLICY_LOAD_H
#define VETHGUARD_POLICY_LOAD_H

#include "vethguard/base/diag.h"
#include "vethguard/policy/policy.h"
#include "vethguard/policy/writers.h"

#define POLICY_FILE_MAX (64u << 20) /* bytes of one file */
#define POLICY_INCLUDE_DEPTH_MAX 16
#define POLICY_INCLUDE_FILES_MAX 256

#define POLICY_PRESETS_MAX 128 /* names listed of one directory */

struct policy_presets {
	size_t count;
	char names[POLICY_PRESETS_MAX][POLICY_NAME_MAX + 1]; /* sorted */
};
/* Lists the presets of a directory: its files NAME.yaml. Lists none if the directory cannot be read. */
void policy_list_presets(const char *directory, struct policy_presets *out);
/* True if name is 1 to POLICY_NAME_MAX lower-case letters, digits and '-'. */
bool policy_is_preset_name(struct slice name);

/* How the loader reads files. The loader does no I/O itself, so that it can be fuzzed and used anywhere. */
struct policy_reader {
	void *context;
	/* Reads path whole into *text (malloc'd, freed by the caller, with a NUL behind its n bytes). Returns 0 or
	 * -errno. */
	int (*read)(void *context, const char *path, char **text, size_t *n);
	const char *preset_dir; /* where "preset:NAME" is looked up, as NAME.yaml */
	/* True if only the reader itself can read the file read last: a regular file owned by root or the reading
	 * user, with no permission for group and others. Asked about configurations that hold a password. NULL means
	 * no. */
	bool (*is_private)(void *context);
	/* Who else can change the file read last, for a note. Borrowed until the next read. NULL: nobody, or unknown.
	 * Presets come with the program, so for them the answer is NULL as well. */
	const struct policy_writers *(*writers)(void *context);
	/* Reads the floor as read() does, but with the same rights whoever has named the policy. Writes to objection
	 * why the file cannot be trusted; an empty text: it can be. NULL: read() reads the floor too, and what
	 * writers() says about it is only a note. */
	int (*read_floor)(
	        void *context, const char *path, char **text, size_t *n, char objection[POLICY_WRITERS_TEXT_MAX]);
	/* policy_list_presets(), for a message about a missing preset. NULL if the caller may not wait for a
	 * directory: the message then names the presets that this version comes with. */
	void (*presets)(const char *directory, struct policy_presets *out);
};

/* What policy_reader_files() stores about the file read last, if its context points to this struct. */
struct policy_file_facts {
	uint32_t owner;
	bool closed; /* no permission for group and others */
	struct policy_writers writers;
};
/* A reader that opens real files and reports files owned by root or by its own user as private. facts is borrowed. */
struct policy_reader policy_reader_private_files(const char *preset_dir, struct policy_file_facts *facts);

/* A reader that opens real files (bounded, regular files only). */
struct policy_reader policy_reader_files(const char *preset_dir);
/* The same, and it reports files that everybody or a group can change. For callers that only look at a policy:
 * another user may be the one who uses it, so owners do not count. facts is borrowed. */
struct policy_reader policy_reader_watchful_files(const char *preset_dir, struct policy_file_facts *facts);
/* Reads a file that is already open as such a reader does. Returns 0 or -errno. facts (may be NULL) gets the file's
 * owner and permissions, and nothing about the directories above. */
int policy_read_open_file(int fd, char **text, size_t *n, struct policy_file_facts *facts);
/* The presets' directory: policies/presets of the source tree if the running program lies in its build/ folder, else
 * VETHGUARD_DATADIR "/presets". The environment is not asked, because it may be hostile. */
const char *policy_default_preset_dir(void);

/* Variables: "${name}" in a destination's host or in a path is replaced by the value of that name, which the caller
 * gives or the policy's own variables: key has as a default. A value is plain text that can only fill the place it
 * was written for: whole labels or a part of one in a host, whole segments or a part of one in a path. A value never
 * becomes a wildcard, an address, a port, a scheme or an escape. */
#define POLICY_VARIABLES_MAX 64       /* for the values a caller gives, and for the variables one policy declares */
#define POLICY_VARIABLE_NAME_MAX 64   /* bytes: letters, digits, '_'; begins with a letter */
#define POLICY_VARIABLE_VALUE_MAX 256 /* bytes, at least one */

struct policy_variable {
	struct slice name, value;
};

/* Why this can be no variable of any policy, as a text to put behind the variable's name ("a value has ..."); NULL if
 * it can be one. policy_load() checks this itself; callers check it to tell their user earlier. */
const char *policy_variable_objection(struct slice name, struct slice value);
/* Splits "name=value" at the first '='. Returns false if there is no '='. out borrows text. */
bool policy_variable_split(struct slice text, struct policy_variable *out);

/* A host that an allow rule names exactly, and where. */
struct policy_host_place {
	struct slice host; /* canonical */
	enum policy_scheme scheme;
	uint16_t port; /* the rule's first port */
	const char *file;
	unsigned line, column;
};

/* A policy in memory. It is read after the main file and all that this includes, as if it were included as well. */
struct policy_more {
	const char *name; /* of the file, in messages */
	struct slice text;
};

/* The floor: a file of the organisation that bounds every policy of a machine (docs/policy.md). */
#define POLICY_FLOOR_PATH "/etc/vethguard/floor.yaml"

struct policy_load_options {
	const char *floor;                       /* absolute path of the floor; NULL: there is none */
	bool floor_required;                     /* if the floor's file does not exist, the load fails */
	bool observe;                            /* mode observe, whatever the file says (--observe) */
	const struct policy_variable *variables; /* borrowed; no two have the same name */
	size_t variable_count;
	const struct policy_more *more; /* borrowed; no two have the same name */
	size_t more_count;
	struct diag_list *notes; /* remarks on what is not an error but probably not meant, for example a variable that
	                            is given and not used; filled only if the load succeeds; NULL: no notes */
	bool thorough; /* notes also cover what may be intended, and rules that decide no request (which takes some
	                  work in a large policy); for commands that review a policy */
	/* Called for each credential of a policy that loaded, with the place of its source, so that the caller can
	 * check whether there is a value. The arguments are borrowed for the call. NULL: not called. */
	void (*each_source)(void *context, const struct policy_credential *credential, const char *file, unsigned line,
	        unsigned column);
	void *each_source_context;
	/* Called for each exact host in the allow rules of a policy that loaded, as often as they name it. place is
	 * borrowed for the call. NULL: not called. */
	void (*each_host)(void *context, const struct policy_host_place *place);
	void *each_host_context;
	/* Called for each file before it is read, with its absolute path, the main file first, so that the caller can
	 * watch the files. NULL: not called. */
	void (*each_file)(void *context, const char *path);
	void *each_file_context;
};

/* Loads and compiles the policy at path. On success *image is malloc'd (freed by the caller) and *size its bytes.
 * Returns 0, -EINVAL with at least one message in diags, or -ENOMEM. */
int policy_load(const struct policy_reader *reader, const char *path, const struct policy_load_options *options,
        uint8_t **image, size_t *size, struct diag_list *diags);

#endif
