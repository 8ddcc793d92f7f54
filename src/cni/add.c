/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ADD. As the first plugin: the daemon makes the link, in the namespace CNI_NETNS, which may have
 * no other link. Behind another plugin: the link exists, and the daemon guards its end on the host.
 * Before that, the other plugin's result is compared with the kernel's view, and the namespace may
 * have no other way out.
 *
 * The runtime starts no process before every plugin has answered, and calls DEL if one fails. So a
 * failure needs no tidying here, but a link made by the daemon is taken back at once.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/deferred.h"
#include "cni/operations.h"
#include "cni/place.h"
#include "cni/result.h"
#include "cni/sandbox.h"

#define LINK_NAME "eth0" /* name of the links that the daemon makes */

static bool no_memory(struct cni_fault *fault)
{
	cni_fail(fault, CNI_IO_FAILURE, "there is no memory", "try again");
	return false;
}

/* Begins a request with the members that every request has. */
static json_t *begin_body(const struct cni_request *request, const char *policy)
{
	char name[CNI_SANDBOX_NAME_MAX + 1];
	json_t *labels = cni_sandbox_labels(request);

	cni_sandbox_name(request, name);
	return labels ? json_pack(
	                        "{s:s, s:s, s:o}", "name", name, "policy", policy, "labels", labels)
	              : NULL;
}

/* Asks the daemon. body is taken over. *sandbox is the caller's. */
static bool attach(
        const struct cni_request *request, json_t *body, json_t **sandbox, struct cni_fault *fault)
{
	struct control_answer answer;
	bool done;
	int rc;

	if (!body)
		return no_memory(fault);
	rc = control_client_call(request->socket, "POST", "/sandboxes", body, &answer);
	json_decref(body);
	done = !rc && control_answer_is_good(&answer);
	if (done)
		*sandbox = json_incref(answer.json);
	else
		cni_fail_call(fault, CNI_REFUSED, CNI_TRY_AGAIN,
		        "the container is not started without its guard", &answer, rc,
		        request->socket);
	control_answer_free(&answer);
	return done;
}

/* The path for the daemon, which may live in a container without the symbolic link /var/run. The
 * last part stays: it may be a link that only the kernel can follow (/proc/PID/ns/net). NULL: there
 * is no such directory, or no memory. */
static json_t *settled_path(const char *netns)
{
	const char *name = strrchr(netns, '/') + 1;
	char directory[CNI_PATH_MAX + 1], settled[PATH_MAX];

	snprintf(directory, sizeof(directory), "%.*s", (int)(name - netns), netns);
	if (!realpath(directory, settled))
		return NULL;
	return json_sprintf("%s%s%s", settled, strcmp(settled, "/") == 0 ? "" : "/", name);
}

static bool add_link(const struct cni_request *request, const char *policy, json_t **result,
        struct cni_fault *fault)
{
	struct cni_fault ignored;
	struct cni_place place;
	json_t *body, *sandbox;

	if (strcmp(request->interface, LINK_NAME) != 0)
		return cni_fail(fault, CNI_INVALID_ENVIRONMENT,
		        "the interface cannot have this name",
		        "CNI_IFNAME is %s: a link that vethguard makes is the container's only "
		        "one, and named " LINK_NAME,
		        request->interface);
	if (!cni_place_look(request, &place, fault))
		return false;
	body = begin_body(request, policy);
	if (body && json_object_set_new(body, "netns", settled_path(request->netns)) < 0) {
		json_decref(body);
		body = NULL;
	}
	if (!attach(request, body, &sandbox, fault))
		return false;
	if (cni_place_look(request, &place, fault)) {
		*result = cni_result_of_link(request, &place, sandbox);
		if (!*result)
			no_memory(fault);
	}
	if (!*result)
		cni_sandbox_detach(request, sandbox, &ignored);
	json_decref(sandbox);
	return *result != NULL;
}

/* The addresses for the daemon: "10.1.2.3", "fd00::3". NULL: no memory. */
static json_t *address_list(const struct cni_addresses *addresses)
{
	const struct ip *const all[] = {&addresses->four, &addresses->six};
	json_t *list = json_array();
	char text[IP_TEXT_MAX];

	for (size_t i = 0; list && i < 2; i++)
		if (all[i]->family &&
		        json_array_append_new(list, json_string(ip_format(all[i], text))) < 0) {
			json_decref(list);
			list = NULL;
		}
	return list;
}

static bool is_as_told(const struct cni_request *request, const struct cni_place *place,
        const struct cni_addresses *told, struct cni_fault *fault)
{
	if (!place->link.index)
		return cni_fail(fault, CNI_INVALID_CONFIG, "prevResult differs from what is there",
		        "%s has no interface %s", request->netns, request->interface);
	if (place->other[0])
		return cni_fail(fault, CNI_CANNOT_GUARD, "the pod has another way out",
		        "its network namespace has the interface %s besides %s: a guarded pod has "
		        "one network",
		        place->other, request->interface);
	if ((told->four.family && !ip_equals(&told->four, &place->four)) ||
	        (told->six.family && !ip_equals(&told->six, &place->six)))
		return cni_fail(fault, CNI_INVALID_CONFIG, "prevResult differs from what is there",
		        "%s has other addresses than prevResult says", request->interface);
	return true;
}

/* Finds the host's end, whose frames no other program may see before the guard. */
static bool find_host_end(const struct cni_request *request, const struct cni_place *place,
        struct netlink_link *host_end, struct cni_fault *fault)
{
	if (!cni_place_host_end(place, host_end, fault))
		return false;
	if (!cni_result_names_host_end(request, host_end->name))
		return cni_fail(fault, CNI_INVALID_CONFIG, "prevResult differs from what is there",
		        "the host's end of %s is %s, which interfaces does not name",
		        request->interface, host_end->name);
	return cni_place_has_router(place, host_end, fault) && cni_place_is_free(host_end, fault);
}

static bool add_behind(const struct cni_request *request, const char *policy, json_t **result,
        struct cni_fault *fault)
{
	struct cni_addresses addresses;
	struct netlink_link host_end;
	struct cni_place place;
	json_t *body, *sandbox;

	if (!cni_result_addresses(request, &addresses, fault) ||
	        !cni_place_look(request, &place, fault) ||
	        !is_as_told(request, &place, &addresses, fault) ||
	        !find_host_end(request, &place, &host_end, fault))
		return false;
	body = begin_body(request, policy);
	if (body && (json_object_set_new(body, "interface", json_string(host_end.name)) < 0 ||
	                    json_object_set_new(body, "addresses", address_list(&addresses)) < 0)) {
		json_decref(body);
		body = NULL;
	}
	if (!attach(request, body, &sandbox, fault))
		return false;
	*result = cni_result_of_previous(request, sandbox);
	json_decref(sandbox);
	return *result || no_memory(fault);
}

bool cni_add(const struct cni_request *request, json_t **result, struct cni_fault *fault)
{
	char policy[PATH_MAX], why[POLICY_NAME_FAULT_MAX];

	*result = NULL;
	if (!policy_name_resolve(request->policy_directory, request->policy, policy, why))
		return cni_fail(fault, CNI_INVALID_CONFIG, "the policy is not there", "%s", why);
	cni_deferred_do(request);
	return request->previous ? add_behind(request, policy, result, fault)
	                         : add_link(request, policy, result, fault);
}
