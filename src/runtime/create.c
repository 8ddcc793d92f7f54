/* SPDX-License-Identifier: Apache-2.0 */
/*
 * create, in this order: read the request; make or find the namespace and guard it; change the
 * configuration; put the guard's link aside; let the real runtime make the container; let the guard
 * follow the container's first process. If a step fails, all steps before it are undone. If this
 * process is killed, the daemon ends the guard, and the next call removes the rest.
 *
 * A namespace that the configuration names and that is guarded already (a pod's second container,
 * --network container:NAME) is shared: this container has the first one's guard and policy.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/adapter/netns_file.h"
#include "vethguard/base/process.h"
#include "runtime/attach.h"
#include "runtime/commands.h"
#include "runtime/config.h"
#include "runtime/edit.h"
#include "runtime/link.h"
#include "runtime/process.h"
#include "runtime/trust.h"

struct birth {
	const struct settings *s;
	const struct line *line;
	struct fault *fault;
	struct config config;
	struct request request;
	struct entry entry;
	json_t *sandbox; /* the daemon's answer; owned */
	bool hooked;     /* Docker's hook was there: it has no other way into the namespace */
};

static void birth_free(struct birth *b)
{
	json_decref(b->sandbox);
	entry_free(&b->entry);
	request_free(&b->request);
	config_free(&b->config);
}

/* Takes everything back that was made for the container. */
static void take_back(struct birth *b)
{
	struct fault ignored = {""};

	if (!b->entry.state)
		return;
	if (*entry_text(&b->entry, ENTRY_SANDBOX) && !entry_is(&b->entry, ENTRY_SHARED))
		(void)guard_detach(b->s, entry_text(&b->entry, ENTRY_SANDBOX), &ignored);
	entry_remove(&b->entry);
}

static bool same_namespace(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static bool set_text(struct birth *b, const char *member, const char *text)
{
	return json_object_set_new(b->entry.state, member, json_string(text)) == 0 ||
	       fault_set(b->fault, "no memory");
}

/* The state is on the disk before anything else is made, with this process as the one it ends with.
 */
static bool begin(struct birth *b)
{
	json_t *state = json_object();

	entry_name(&b->entry, b->s, b->line->root, b->line->id);
	b->entry.state = state;
	if (!state || !entry_set_process(&b->entry, getpid()))
		return fault_set(b->fault, "no memory");
	if (set_text(b, ENTRY_ID, b->line->id) && set_text(b, ENTRY_BUNDLE, b->config.bundle) &&
	        entry_make(&b->entry, b->s, state, b->fault))
		return true;
	entry_free(&b->entry); /* there is nothing of ours to take back */
	return false;
}

static bool make_netns(struct birth *b)
{
	char path[PATH_MAX];
	int rc;

	snprintf(path, sizeof(path), NETNS_FILE_DIRECTORY "/vethguard-%s", b->entry.key);
	if (!set_text(b, ENTRY_NETNS, path) ||
	        json_object_set_new(b->entry.state, ENTRY_OWN_NETNS, json_true()) != 0 ||
	        !entry_save(&b->entry, b->fault))
		return fault_set(b->fault, "no memory");
	(void)netns_file_remove(path); /* of a container that nothing else is known about */
	rc = netns_file_make(path);
	return rc == 0 || fault_set(b->fault, "a network namespace cannot be made at %s: %s", path,
	                          strerror(-rc));
}

/* A namespace that is there already: the guard that it has, or none. */
static bool look_for_guard(struct birth *b, const char *path)
{
	const char *policy;
	char wanted[PATH_MAX], why[POLICY_NAME_FAULT_MAX];

	if (same_namespace(path, "/proc/self/ns/net") || same_namespace(path, "/proc/1/ns/net"))
		return fault_set(b->fault,
		        "the container is to have the host's own network, which cannot be "
		        "guarded: start it without --network host");
	if (!set_text(b, ENTRY_NETNS, path))
		return false;
	b->sandbox = guard_find_netns(b->s, path, b->fault);
	if (!b->sandbox)
		return !b->fault->text[0];
	policy = control_text(json_object_get(b->sandbox, "policy"), "path");
	if (!policy_name_resolve(b->s->policies, b->request.policy, wanted, why) ||
	        strcmp(policy, wanted) != 0)
		return fault_set(b->fault,
		        "the container's network namespace is guarded already, as %s, under %s and "
		        "not under "
		        "the policy %s: containers that share a network share its policy",
		        control_text(b->sandbox, "name"), *policy ? policy : "another policy",
		        b->request.policy);
	return json_object_set_new(b->entry.state, ENTRY_SHARED, json_true()) == 0;
}

static bool attach(struct birth *b)
{
	json_t *body;

	if (!b->sandbox) {
		body = attach_body(b->s, &b->request, b->config.root, b->line, getpid(), b->fault);
		if (!body)
			return false;
		json_object_set_new(body, "netns", json_string(entry_text(&b->entry, ENTRY_NETNS)));
		b->sandbox = attach_ask(b->s, &b->request, body, b->fault);
	}
	return b->sandbox && set_text(b, ENTRY_SANDBOX, control_text(b->sandbox, "name")) &&
	       entry_save(&b->entry, b->fault);
}

static bool keep_variables(struct birth *b, const struct environment *env)
{
	json_t *list = json_array();

	for (size_t i = 0; i < env->count; i++)
		json_array_append_new(list, json_string(env->vars[i]));
	return (list && json_object_set_new(b->entry.state, ENTRY_ENV, list) == 0) ||
	       fault_set(b->fault, "no memory");
}

static bool change_config(struct birth *b)
{
	json_t *answer = guard_env(b->s, entry_text(&b->entry, ENTRY_SANDBOX), b->fault);
	json_t *root = b->config.root, *process = json_object_get(root, "process");
	struct environment env;
	bool good;

	if (!answer)
		return false;
	environment_init(&env);
	request_strip(process);
	b->hooked = edit_drop_docker_hook(root);
	good = trust_install(&b->config, &b->entry, answer, &env, b->fault) &&
	       edit_set_variables(process, &env, b->fault) && keep_variables(b, &env) &&
	       edit_set_netns(root, entry_text(&b->entry, ENTRY_NETNS), b->fault) &&
	       edit_annotate(root, CONFIG_EDITED, entry_text(&b->entry, ENTRY_SANDBOX), b->fault) &&
	       config_write(&b->config, b->fault);
	environment_fini(&env);
	json_decref(answer);
	return good;
}

/* These engines are finished with the namespace before they call the runtime, or never look at it.
 * So the link is not put aside, which would cost two grace periods of the kernel. */
static bool engine_is_done(const struct birth *b)
{
	static const char *const engines[] = {"podman", "containerd", "cri-o"};
	const char *engine = attach_engine(b->config.root, b->line);

	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (strcmp(engine, engines[i]) == 0)
			return true;
	return b->hooked;
}

/* Only between create and start can an engine put something of its own into the namespace. */
static bool note_link(struct birth *b)
{
	json_t *facts;

	if (b->line->verb != VERB_CREATE || entry_is(&b->entry, ENTRY_SHARED))
		return true;
	if (json_object_set_new(b->entry.state, ENTRY_NET_ADMIN,
	            json_boolean(edit_has_net_admin(b->config.root))) != 0)
		return fault_set(b->fault, "no memory");
	facts = link_note(
	        entry_text(&b->entry, ENTRY_NETNS), b->sandbox, !engine_is_done(b), b->fault);
	return facts && json_object_set_new(b->entry.state, ENTRY_LINK, facts) == 0;
}

static bool prepare(struct birth *b)
{
	const char *path = edit_find_netns(b->config.root, b->fault);

	return path && begin(b) && (*path ? look_for_guard(b, path) : make_netns(b)) && attach(b) &&
	       change_config(b) && note_link(b) && entry_save(&b->entry, b->fault);
}

/* From here on the guard ends with the container's first process. */
static bool follow(struct birth *b)
{
	pid_t pid = process_init(b->s, b->line);
	uint64_t start_time;

	if (pid == 0 || !entry_set_process(&b->entry, pid) ||
	        process_start_time(pid, &start_time) != 0)
		return fault_set(b->fault,
		        "the container's process is gone, or %s does not tell it", b->s->runtime);
	return entry_save(&b->entry, b->fault) &&
	       (entry_is(&b->entry, ENTRY_SHARED) ||
	               guard_follow(b->s, entry_text(&b->entry, ENTRY_SANDBOX), pid, start_time,
	                       b->fault));
}

/* Has the real runtime make it. A container that `run` has waited for is over. */
static int make(struct birth *b)
{
	int rc = process_run(b->s, b->line->words);
	bool over = b->line->verb == VERB_RUN && !b->line->detach;

	if (rc < 0)
		fault_set(b->fault, "the real runtime %s: %s", b->s->runtime, strerror(-rc));
	if (rc == 0 && !over && follow(b))
		return 0;
	if (rc == 0 && !over) {
		process_delete(b->s, b->line);
		rc = PROCESS_EXIT;
	}
	take_back(b);
	return rc < 0 ? PROCESS_EXIT : rc;
}

/* runsc can be told to leave the namespace alone and use the host's sockets. */
static bool check_runsc(const struct birth *b)
{
	const json_t *annotations = json_object_get(b->config.root, "annotations");

	if (b->line->network && strcmp(b->line->network, "sandbox") != 0)
		return fault_set(b->fault,
		        "the runtime is called with --network=%s: only --network=sandbox can be "
		        "guarded; "
		        "change its runtimeArgs",
		        strcmp(b->line->network, "host") == 0 ? "host" : "...");
	return !b->line->flag_override ||
	       !json_object_get(annotations, "dev.gvisor.flag.network") ||
	       fault_set(b->fault, "the annotation dev.gvisor.flag.network would undo the guard");
}

static bool check_line(const struct birth *b)
{
	if (b->line->other_config)
		return fault_set(b->fault,
		        "--config is not known to vethguard-runtime: the configuration that "
		        "it changes is config.json of the bundle");
	return check_runsc(b);
}

static enum attach_choice read_request(struct birth *b)
{
	if (!config_read(&b->config, b->line->bundle, b->fault) ||
	        !request_read(&b->request, b->config.root, b->s->environment, b->fault))
		return ATTACH_NO;
	return attach_choose(b->s, &b->request, b->fault);
}

int command_create(const struct settings *s, const struct line *line, struct fault *fault)
{
	struct birth b = {.s = s, .line = line, .fault = fault};
	enum attach_choice choice;
	int rc = PROCESS_EXIT;

	entries_tidy(s);
	choice = read_request(&b);
	if (choice == ATTACH_GUARD && check_line(&b)) {
		if (prepare(&b))
			rc = make(&b);
		else
			take_back(&b);
	}
	birth_free(&b);
	return choice == ATTACH_LEAVE ? process_become(s, line, fault) : rc;
}

int command_restore(const struct settings *s, const struct line *line, struct fault *fault)
{
	struct birth b = {.s = s, .line = line, .fault = fault};
	enum attach_choice choice = read_request(&b);

	birth_free(&b);
	if (choice == ATTACH_LEAVE)
		return process_become(s, line, fault);
	fault_set(fault,
	        "a container cannot be restored from a checkpoint behind a guard: start it anew");
	return PROCESS_EXIT;
}
