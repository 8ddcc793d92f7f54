/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard of an endpoint: a sandbox of the daemon, attached to the outer end of the pair. Labels
 * say which network and endpoint of dockerd's it is for. A call waits for the daemon; dockerd's
 * other calls wait meanwhile, as the daemon does one thing at a time too.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/base/log.h"
#include "docker/docker.h"

#define PATH_TEXT_MAX 128
#define SANDBOX_NAME_MAX 64 /* the daemon's bound: a caller may have chosen the name */
#define CONFLICT 409
#define NOT_FOUND 404

const char *docker_guard_interface(const json_t *sandbox)
{
	const char *name = control_text(json_object_get(sandbox, "attachment"), "interface");

	return docker_endpoint_is_outer(name) ? name : "";
}

static json_t *addresses_of(const struct docker_endpoint *endpoint)
{
	json_t *all = json_array();

	if (endpoint->address4.text[0])
		json_array_append_new(all, json_string(endpoint->address4.text));
	if (endpoint->address6.text[0])
		json_array_append_new(all, json_string(endpoint->address6.text));
	return all;
}

/* Returns a new object, or NULL: no memory. */
static json_t *request_of(const struct docker_network *network,
        const struct docker_endpoint *endpoint, const char *policy)
{
	json_t *body = json_pack("{ss ss ss so sb sO}", "name", endpoint->name, "interface",
	        endpoint->outer, "policy", policy, "addresses", addresses_of(endpoint), "observe",
	        (int)network->observe, "vars", network->vars);
	json_t *labels = json_copy(network->labels);

	json_object_set_new(labels, DOCKER_LABEL_NETWORK, json_string(network->id));
	json_object_set_new(labels, DOCKER_LABEL_ENDPOINT, json_string(endpoint->id));
	if (!body || json_object_set_new(body, "labels", labels) < 0) {
		json_decref(body);
		return NULL;
	}
	if (network->ttl_s)
		json_object_set_new(body, "ttl_s", json_integer(network->ttl_s));
	return body;
}

/* True if the sandbox of that name is this endpoint's: a call was made twice, or the service was
 * killed before it could answer. */
static bool is_there(struct docker *docker, const struct docker_endpoint *endpoint)
{
	struct control_answer answer;
	char path[PATH_TEXT_MAX];
	bool is;

	snprintf(path, sizeof(path), "/sandboxes/%s", endpoint->name);
	is = control_client_call(docker->control, "GET", path, NULL, &answer) == 0 &&
	     answer.status == 200 &&
	     strcmp(docker_guard_interface(answer.json), endpoint->outer) == 0 &&
	     strcmp(control_text(json_object_get(answer.json, "labels"), DOCKER_LABEL_ENDPOINT),
	             endpoint->id) == 0;
	control_answer_free(&answer);
	return is;
}

static void warn(const struct docker_endpoint *endpoint, const json_t *warnings)
{
	char text[CONTROL_CLIENT_TEXT_MAX];

	for (size_t i = 0; i < json_array_size(warnings); i++) {
		const char *line = json_string_value(json_array_get(warnings, i));

		if (line)
			log_sandbox(LOG_LEVEL_WARN, endpoint->name, "%s",
			        slice_escape_controls(slice_from_string(line), text, sizeof(text)));
	}
}

bool docker_guard_attach(struct docker *docker, const struct docker_network *network,
        const struct docker_endpoint *endpoint, char *fault)
{
	struct control_answer answer;
	char policy[PATH_MAX], text[CONTROL_CLIENT_TEXT_MAX];
	json_t *body;
	bool good;
	int rc;

	if (!policy_name_resolve(docker->policies, network->policy, policy, text))
		return docker_wrong(fault, "%s", text);
	body = request_of(network, endpoint, policy);
	if (!body)
		return docker_wrong(fault, "no memory");
	rc = control_client_call(docker->control, "POST", "/sandboxes", body, &answer);
	json_decref(body);
	good = rc == 0 && control_answer_is_good(&answer);
	if (good)
		warn(endpoint, json_object_get(answer.json, "warnings"));
	else if (rc == 0 && answer.status == CONFLICT)
		good = is_there(docker, endpoint);
	if (!good)
		docker_wrong(fault, "%s is not guarded: %s", endpoint->name,
		        control_answer_fault(&answer, rc, docker->control, text));
	control_answer_free(&answer);
	return good;
}

/* The name of the sandbox that guards this interface. False: the daemon does not answer. "": there
 * is none. */
static bool find(struct docker *docker, const char *outer, char name[SANDBOX_NAME_MAX + 1])
{
	char fault[DOCKER_FAULT_MAX];
	json_t *all = docker_guard_list(docker, fault);

	name[0] = 0;
	for (size_t i = 0; i < json_array_size(all); i++) {
		const json_t *sandbox = json_array_get(all, i);

		if (strcmp(docker_guard_interface(sandbox), outer) == 0)
			snprintf(name, SANDBOX_NAME_MAX + 1, "%s", control_text(sandbox, "name"));
	}
	json_decref(all);
	return all;
}

/* The daemon finds sandboxes by name, and a sandbox with this name may be attached to something
 * else. */
bool docker_guard_detach(struct docker *docker, const char *outer)
{
	char name[SANDBOX_NAME_MAX + 1], path[PATH_TEXT_MAX];
	struct control_answer answer;
	bool done;

	if (!find(docker, outer, name))
		return false;
	if (!name[0])
		return true;
	snprintf(path, sizeof(path), "/sandboxes/%s", name);
	done = control_client_call(docker->control, "DELETE", path, NULL, &answer) == 0 &&
	       (control_answer_is_good(&answer) || answer.status == NOT_FOUND);
	control_answer_free(&answer);
	return done;
}

json_t *docker_guard_list(struct docker *docker, char *fault)
{
	struct control_answer answer;
	char text[CONTROL_CLIENT_TEXT_MAX];
	int rc = control_client_call(docker->control, "GET", "/sandboxes", NULL, &answer);
	json_t *all = NULL, *sandboxes = json_object_get(answer.json, "sandboxes");

	if (rc == 0 && answer.status == 200 && json_is_array(sandboxes))
		all = json_array();
	else
		docker_wrong(fault, "%s", control_answer_fault(&answer, rc, docker->control, text));
	for (size_t i = 0; all && i < json_array_size(sandboxes); i++)
		if (docker_guard_interface(json_array_get(sandboxes, i))[0])
			json_array_append(all, json_array_get(sandboxes, i));
	control_answer_free(&answer);
	return all;
}
