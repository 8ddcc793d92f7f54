/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hook of an engine that calls another runtime by itself (hooks.d of Podman and CRI-O). It runs
 * when the container's namespaces are made and its first instruction is not run, so the network is
 * guarded from the first packet on. It comes too late to change the configuration: variables stay
 * as they are, and so do mounts.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/base/buf.h"
#include "runtime/attach.h"
#include "runtime/commands.h"
#include "runtime/config.h"
#include "runtime/process.h"
#include "runtime/trust.h"

#define HOOK_ROOT                                                                                \
	"hook" /* of the entries' keys: an engine's runtime may guard a container of the same id \
	        */

struct stage {
	const struct settings *s;
	struct fault *fault;
	struct line line; /* as if the engine had called the runtime */
	json_t *state;
	struct config config;
	struct request request;
	struct entry entry;
};

static json_t *read_state(struct fault *fault)
{
	struct buf text;
	json_t *state = NULL;
	uint8_t *room;
	ssize_t n = -1;

	buf_init(&text, PROCESS_STATE_MAX);
	while ((room = buf_reserve(&text, 4096)) && (n = read(STDIN_FILENO, room, 4096)) > 0)
		buf_commit(&text, (size_t)n);
	if (room && n == 0)
		state = json_loadb(
		        (char *)buf_slice(&text).p, text.len, JSON_REJECT_DUPLICATES, NULL);
	buf_fini(&text);
	if (!json_is_object(state))
		fault_set(fault, "the state on standard input is not a JSON object: an engine's "
		                 "hook has to call this program");
	return state;
}

static bool write_files(struct stage *stage)
{
	json_t *answer =
	        guard_env(stage->s, entry_text(&stage->entry, ENTRY_SANDBOX), stage->fault);
	bool good = answer && trust_write(&stage->config, answer, stage->fault);

	json_decref(answer);
	return good;
}

static bool attach(struct stage *stage)
{
	pid_t pid = (pid_t)json_integer_value(json_object_get(stage->state, "pid"));
	json_t *body, *answer, *kept = json_object();

	stage->entry.state = kept;
	if (pid <= 0 || !kept || !entry_set_process(&stage->entry, pid))
		return fault_set(stage->fault,
		        "the container has no process yet: the hook's stage is createRuntime");
	json_object_set_new(kept, ENTRY_ID, json_string(stage->line.id));
	if (!entry_make(&stage->entry, stage->s, kept, stage->fault))
		return false;
	body = attach_body(
	        stage->s, &stage->request, stage->config.root, &stage->line, pid, stage->fault);
	if (!body)
		return false;
	answer = attach_ask(stage->s, &stage->request, body, stage->fault);
	json_object_set_new(kept, ENTRY_SANDBOX, json_string(control_text(answer, "name")));
	json_decref(answer);
	return answer && entry_save(&stage->entry, stage->fault) && write_files(stage);
}

static void detach(struct stage *stage)
{
	struct fault ignored = {""};

	if (*entry_text(&stage->entry, ENTRY_SANDBOX))
		(void)guard_detach(stage->s, entry_text(&stage->entry, ENTRY_SANDBOX), &ignored);
	entry_remove(&stage->entry);
}

static bool begin(struct stage *stage)
{
	const char *bundle = control_text(stage->state, "bundle");
	enum attach_choice choice;

	if (!config_read(&stage->config, bundle, stage->fault) ||
	        !request_read(
	                &stage->request, stage->config.root, stage->s->environment, stage->fault))
		return false;
	choice = attach_choose(stage->s, &stage->request, stage->fault);
	if (choice != ATTACH_GUARD)
		return choice == ATTACH_LEAVE;
	if (attach(stage))
		return true;
	if (stage->entry.state)
		detach(stage);
	return false;
}

int command_hook(const struct settings *s, const struct line *line, struct fault *fault)
{
	struct stage stage = {.s = s, .fault = fault, .line = *line, .state = read_state(fault)};
	bool good = false;

	stage.line.id = control_text(stage.state, "id");
	stage.line.root = HOOK_ROOT;
	if (stage.state && !*stage.line.id)
		fault_set(fault, "the state on standard input has no id");
	entries_tidy(s);
	entry_name(&stage.entry, s, HOOK_ROOT, stage.line.id);
	if (fault->text[0]) {
		good = false;
	} else if (strcmp(control_text(stage.state, "status"), "stopped") == 0) {
		good = true;
		if (entry_load(&stage.entry, fault))
			detach(&stage);
	} else {
		good = begin(&stage);
	}
	entry_free(&stage.entry);
	request_free(&stage.request);
	config_free(&stage.config);
	json_decref(stage.state);
	return good && !fault->text[0] ? 0 : PROCESS_EXIT;
}
