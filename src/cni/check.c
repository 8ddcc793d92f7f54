/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CHECK succeeds if the daemon serves the sandbox, its link is where it was, with the addresses
 * that ADD answered, and the namespace has no other way out. A sandbox that the operator paused is
 * no fault. Neither is one whose worker is being restarted.
 */
#include "cni/operations.h"
#include "cni/place.h"
#include "cni/result.h"
#include "cni/sandbox.h"

#define MESSAGE "the container is not guarded as it was"

static bool is_state(const char *state, const char *one, const char *other)
{
	return strcmp(state, one) == 0 || strcmp(state, other) == 0;
}

static bool check_state(const json_t *sandbox, struct cni_fault *fault)
{
	const char *state = control_text(sandbox, "state"),
	           *reason = control_text(sandbox, "reason");

	if (is_state(state, "serving", "paused"))
		return true;
	return cni_fail(fault,
	        is_state(state, "starting", "restarting") ? CNI_TRY_AGAIN : CNI_NOT_GUARDED,
	        MESSAGE, "sandbox %s is in the state %s%s%s", control_text(sandbox, "name"), state,
	        *reason ? ": " : "", reason);
}

static bool is_address(const struct ip *ip, const json_t *sandbox, const char *which)
{
	const char *text = control_text(json_object_get(sandbox, "addresses"), which);
	char own[IP_TEXT_MAX];

	return *text ? ip->family && strcmp(ip_format(ip, own), text) == 0 : !ip->family;
}

static bool check_addresses(const struct cni_request *request, const struct cni_place *place,
        const json_t *sandbox, struct cni_fault *fault)
{
	struct cni_addresses told;

	if (!cni_result_addresses(request, &told, fault))
		return false;
	if (!is_address(&told.four, sandbox, "sandbox4") ||
	        !is_address(&told.six, sandbox, "sandbox6"))
		return cni_fail(fault, CNI_NOT_GUARDED, MESSAGE,
		        "the guard is for other addresses than prevResult has");
	if ((told.four.family && !ip_equals(&told.four, &place->four)) ||
	        (told.six.family && !ip_equals(&told.six, &place->six)))
		return cni_fail(fault, CNI_NOT_GUARDED, MESSAGE,
		        "%s has other addresses than prevResult has", request->interface);
	return true;
}

/* The link is the daemon's in this namespace, or has its other end where the daemon guards it. */
static bool check_link(const struct cni_request *request, const struct cni_place *place,
        const json_t *sandbox, struct cni_fault *fault)
{
	const char *interface = cni_sandbox_interface(sandbox);
	const char *netns = control_text(json_object_get(sandbox, "attachment"), "netns");
	struct netlink_link host_end;

	if (!place->link.index || !place->link.up)
		return cni_fail(fault, CNI_NOT_GUARDED, MESSAGE, "%s is %s", request->interface,
		        place->link.index ? "down" : "not there");
	if (place->other[0])
		return cni_fail(fault, CNI_NOT_GUARDED, MESSAGE,
		        "its network namespace has the interface %s besides %s, by which it could "
		        "leave",
		        place->other, request->interface);
	if (!*interface && !cni_place_is_same(netns, request->netns))
		return cni_fail(fault, CNI_NOT_GUARDED, MESSAGE,
		        "the guard is for the network namespace %s", netns);
	if (!*interface && !place->has_route)
		return cni_fail(fault, CNI_NOT_GUARDED, MESSAGE, "%s has no default route",
		        request->interface);
	if (!*interface)
		return true;
	if (!cni_place_host_end(place, &host_end, fault))
		return false;
	return strcmp(host_end.name, interface) == 0 ||
	       cni_fail(fault, CNI_NOT_GUARDED, MESSAGE,
	               "the guard is on %s, the other end of %s is %s", interface,
	               request->interface, host_end.name);
}

bool cni_check(const struct cni_request *request, json_t **result, struct cni_fault *fault)
{
	struct cni_place place;
	json_t *sandbox;
	bool good;

	*result = NULL;
	if (!cni_sandbox_find(request, &sandbox, fault))
		return false;
	if (!sandbox)
		return cni_fail(
		        fault, CNI_NOT_GUARDED, MESSAGE, "the daemon has no sandbox for it");
	good = check_state(sandbox, fault) && cni_place_look(request, &place, fault) &&
	       check_link(request, &place, sandbox, fault) &&
	       check_addresses(request, &place, sandbox, fault);
	json_decref(sandbox);
	return good;
}
