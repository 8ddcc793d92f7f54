/* SPDX-License-Identifier: Apache-2.0 */
/* DEL, GC, STATUS and VERSION; see cni/operations.h. */
#include <limits.h>
#include <stdio.h>

#include "cni/deferred.h"
#include "cni/operations.h"
#include "cni/sandbox.h"

static bool detach(const struct cni_request *request, struct cni_fault *fault)
{
	json_t *sandbox;
	bool done;

	if (!cni_sandbox_find(request, &sandbox, fault))
		return false;
	done = !sandbox || cni_sandbox_detach(request, sandbox, fault);
	json_decref(sandbox);
	return done;
}

bool cni_del(const struct cni_request *request, json_t **result, struct cni_fault *fault)
{
	*result = NULL;
	if (!detach(request, fault))
		return fault->code == CNI_TRY_AGAIN && cni_deferred_note(request);
	cni_deferred_do(request);
	return true;
}

static bool is_valid(const struct cni_request *request, const json_t *labels)
{
	const json_t *attachment;
	size_t i;

	json_array_foreach(request->attachments, i, attachment)
	{
		if (strcmp(control_text(attachment, "containerID"),
		            control_text(labels, CNI_LABEL_CONTAINER)) == 0 &&
		        strcmp(control_text(attachment, "ifname"),
		                control_text(labels, CNI_LABEL_INTERFACE)) == 0)
			return true;
	}
	return false;
}

/* Gets the sandbox with its labels. If the list is too long, it has no labels, and they are asked
 * for one by one. *out is owned by the caller; NULL: the sandbox has gone meanwhile. */
static bool with_labels(
        const struct cni_request *request, json_t *listed, json_t **out, struct cni_fault *fault)
{
	char path[CNI_SANDBOX_NAME_MAX + 16];
	struct control_answer answer;
	int rc;

	*out = NULL;
	if (json_is_object(json_object_get(listed, "labels"))) {
		*out = json_incref(listed);
		return true;
	}
	snprintf(path, sizeof(path), "/sandboxes/%.*s", CNI_SANDBOX_NAME_MAX,
	        control_text(listed, "name"));
	rc = control_client_call(request->socket, "GET", path, NULL, &answer);
	if (!rc && answer.status == 200)
		*out = json_incref(answer.json);
	else if (rc || answer.status != 404)
		cni_fail_call(fault, CNI_TRY_AGAIN, CNI_TRY_AGAIN,
		        "vethguardd does not list its sandboxes", &answer, rc, request->socket);
	control_answer_free(&answer);
	return *out || (!rc && answer.status == 404);
}

/* Ends this sandbox of the daemon's list if it is of this network and the runtime did not name it.
 */
static bool collect(const struct cni_request *request, json_t *listed, struct cni_fault *fault)
{
	const json_t *labels;
	json_t *sandbox;
	bool good = true;

	if (!with_labels(request, listed, &sandbox, fault))
		return false;
	labels = json_object_get(sandbox, "labels");
	if (sandbox && *control_text(labels, CNI_LABEL_CONTAINER) &&
	        strcmp(control_text(labels, CNI_LABEL_NETWORK), request->network) == 0 &&
	        !is_valid(request, labels))
		good = cni_sandbox_detach(request, sandbox, fault);
	json_decref(sandbox);
	return good;
}

bool cni_gc(const struct cni_request *request, json_t **result, struct cni_fault *fault)
{
	struct control_answer list;
	json_t *sandbox;
	bool good = true;
	size_t i;
	int rc;

	*result = NULL;
	cni_deferred_do(request);
	rc = control_client_call(request->socket, "GET", "/sandboxes", NULL, &list);
	if (rc || list.status != 200)
		good = cni_fail_call(fault, CNI_TRY_AGAIN, CNI_TRY_AGAIN,
		        "vethguardd does not list its sandboxes", &list, rc, request->socket);
	else
		json_array_foreach(json_object_get(list.json, "sandboxes"), i, sandbox)
		{
			good = collect(request, sandbox, fault) && good;
		}
	control_answer_free(&list);
	return good;
}

static bool decide_status(
        const struct cni_request *request, const json_t *status, struct cni_fault *fault)
{
	char policy[PATH_MAX], why[POLICY_NAME_FAULT_MAX];

	if (!json_is_true(json_object_get(status, "ready")))
		return cni_fail(fault, CNI_NOT_AVAILABLE, "vethguardd is not ready",
		        "it has been started and takes over the sandboxes of before; try again");
	if (!json_is_true(json_object_get(json_object_get(status, "audit"), "recording")))
		return cni_fail(fault, CNI_NOT_AVAILABLE_LIMITED,
		        "vethguardd cannot write its audit log",
		        "%s: nothing passes until it can; is the disk full?",
		        control_text(json_object_get(status, "audit"), "path"));
	if (*request->policy &&
	        !policy_name_resolve(request->policy_directory, request->policy, policy, why))
		return cni_fail(fault, CNI_NOT_AVAILABLE, "the policy is not there", "%s", why);
	return true;
}

bool cni_status(const struct cni_request *request, json_t **result, struct cni_fault *fault)
{
	struct control_answer answer;
	bool good;
	int rc;

	*result = NULL;
	rc = control_client_call(request->socket, "GET", "/status", NULL, &answer);
	if (rc || answer.status != 200)
		good = cni_fail_call(fault, CNI_NOT_AVAILABLE, CNI_NOT_AVAILABLE_LIMITED,
		        "vethguardd cannot be reached: its sandboxes are cut off, and no new one "
		        "starts",
		        &answer, rc, request->socket);
	else
		good = decide_status(request, answer.json, fault);
	control_answer_free(&answer);
	return good;
}

bool cni_version(const struct cni_request *request, json_t **result, struct cni_fault *fault)
{
	json_t *list = json_array();

	for (size_t i = 0; list && cni_versions[i]; i++)
		json_array_append_new(list, json_string(cni_versions[i]));
	*result =
	        json_pack("{s:s, s:o}", "cniVersion", request->version, "supportedVersions", list);
	return *result || cni_fail(fault, CNI_IO_FAILURE, "there is no memory", "try again");
}
