/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What comes after create. A container without an entry here is not guarded, and its calls are
 * passed on unchanged. If its entry was lost, it is not started, because nothing is known any more
 * of what is in its namespace.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/commands.h"
#include "runtime/config.h"
#include "runtime/edit.h"
#include "runtime/guard.h"
#include "runtime/link.h"
#include "runtime/process.h"

#define JOINED "--process="

/* True if the real runtime knows the container as one that was made by command_create(). */
static bool was_ours(const struct settings *s, const struct line *line)
{
	json_t *state = process_state(s, line);
	bool ours = json_object_get(json_object_get(state, "annotations"), CONFIG_EDITED) != NULL;

	json_decref(state);
	return ours;
}

static bool make_ready(const struct settings *s, struct entry *e, struct fault *fault)
{
	const json_t *facts = json_object_get(e->state, ENTRY_LINK);

	if (!guard_is_served(s, entry_text(e, ENTRY_SANDBOX), fault))
		return false;
	if (!facts)
		return true;
	if (!link_settle(entry_text(e, ENTRY_NETNS), facts, entry_is(e, ENTRY_NET_ADMIN), fault))
		return false;
	json_object_del(e->state, ENTRY_LINK);
	return entry_save(e, fault);
}

int command_start(const struct settings *s, const struct line *line, struct fault *fault)
{
	struct entry e;
	bool ready;

	entry_name(&e, s, line->root, line->id);
	if (entry_load(&e, fault))
		ready = make_ready(s, &e, fault);
	else
		ready = !fault->text[0] &&
		        (!was_ours(s, line) ||
		                fault_set(fault, "the container's guard is gone: remove the "
		                                 "container and start another"));
	entry_free(&e);
	return ready ? process_become(s, line, fault) : PROCESS_EXIT;
}

/* No process of the container is in its namespace any more, or the container is unknown. */
static void forget(const struct settings *s, struct entry *e)
{
	struct fault ignored = {""};

	if (*entry_text(e, ENTRY_SANDBOX) && !entry_is(e, ENTRY_SHARED))
		(void)guard_detach(s, entry_text(e, ENTRY_SANDBOX), &ignored);
	entry_remove(e);
}

int command_delete(const struct settings *s, const struct line *line, struct fault *fault)
{
	struct fault damaged = {""};
	struct entry e;
	int rc;

	entry_name(&e, s, line->root, line->id);
	if (line->by_pattern || (!entry_load(&e, &damaged) && !damaged.text[0])) {
		entries_tidy(s);
		return process_become(s, line, fault);
	}
	rc = process_run(s, line->words);
	if (rc < 0)
		fault_set(fault, "the real runtime %s: %s", s->runtime, strerror(-rc));
	if (rc == 0 || line->force)
		forget(s, &e);
	entry_free(&e);
	entries_tidy(s); /* this one too, if its process is gone and the real runtime knew nothing
	                    of it */
	return rc < 0 ? PROCESS_EXIT : rc;
}

static bool read_process(const char *path, struct config *c, struct fault *fault)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	char *text = NULL;
	ssize_t n = -1;
	bool good;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= CONFIG_MAX)
		text = malloc((size_t)st.st_size + 1);
	if (text)
		n = read(fd, text, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	good = n >= 0 && config_parse(c, slice_of(text, (size_t)n), fault);
	free(text);
	return good || fault_set(fault, "%s: the description of the process cannot be read", path);
}

/* The kept variables into the process's description, of which a copy goes to the real runtime. */
static bool add_variables(
        const struct entry *e, const char *path, char copy[PATH_MAX], struct fault *fault)
{
	const json_t *kept = json_object_get(e->state, ENTRY_ENV);
	struct config process = {.root = NULL};
	struct environment env;
	char *text = NULL, name[64];
	bool good = read_process(path, &process, fault);

	environment_init(&env);
	for (size_t i = 0; i < json_array_size(kept); i++) {
		char *one[] = {(char *)(uintptr_t)json_string_value(json_array_get(kept, i)), NULL};

		environment_copy(&env, one);
	}
	snprintf(name, sizeof(name), "exec-%d.json", (int)getpid());
	request_strip(process.root);
	good = good && edit_set_variables(process.root, &env, fault) &&
	       (text = config_text(&process)) &&
	       entry_write(e, name, ENTRY_HIDDEN, slice_from_string(text), copy, fault);
	free(text);
	environment_fini(&env);
	config_free(&process);
	return good || fault_set(fault, "no memory");
}

int command_exec(const struct settings *s, const struct line *line, struct fault *fault)
{
	char copy[PATH_MAX], word[PATH_MAX + sizeof(JOINED)];
	struct line changed = *line;
	struct entry e;
	const char *path;
	bool joined;
	int rc;

	entry_name(&e, s, line->root, line->id);
	if (!line->process_at || !entry_load(&e, fault)) {
		entry_free(&e);
		return fault->text[0] ? PROCESS_EXIT : process_become(s, line, fault);
	}
	joined = strncmp(line->words[line->process_at], JOINED, strlen(JOINED)) == 0;
	path = line->words[line->process_at] + (joined ? strlen(JOINED) : 0);
	if (!add_variables(&e, path, copy, fault)) {
		entry_free(&e);
		return PROCESS_EXIT;
	}
	entry_free(&e);
	snprintf(word, sizeof(word), "%s%s", joined ? JOINED : "", copy);
	changed.words[line->process_at] = word;
	rc = process_run(s, changed.words);
	unlink(copy);
	return rc < 0 ? PROCESS_EXIT : rc;
}
