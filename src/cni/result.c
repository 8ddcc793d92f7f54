/* SPDX-License-Identifier: Apache-2.0 */
/* Results; see cni/result.h. */
#include <stdio.h>

#include "cni/result.h"

#define SHOWN_MAX 96

/* --- reading --- */

static bool wrong(struct cni_fault *fault, const char *why)
{
	return cni_fail(fault, CNI_INVALID_CONFIG, "prevResult is invalid", "%s", why);
}

static bool is_list(const json_t *list)
{
	return !list || (json_is_array(list) && json_array_size(list) <= CNI_RESULT_ITEMS_MAX);
}

/* True if this is CNI_IFNAME in CNI_NETNS. */
static bool is_containers(const struct cni_request *request, const json_t *interface)
{
	const char *sandbox = control_text(interface, "sandbox");

	return *sandbox && strcmp(control_text(interface, "name"), request->interface) == 0 &&
	       cni_place_is_same(sandbox, request->netns);
}

/* Writes the address of "ADDRESS/BITS". */
static bool read_address(const json_t *item, struct ip *out, struct cni_fault *fault)
{
	const struct slice text = slice_from_string(control_text(item, "address"));
	const ptrdiff_t slash = slice_find_byte(text, '/');
	char shown[SHOWN_MAX];
	uint64_t bits;

	*out = (struct ip){0};
	if (slash > 0 && ip_parse(slice_of(text.p, (size_t)slash), out) &&
	        slice_to_u64(slice_of(text.p + slash + 1, text.n - (size_t)slash - 1),
	                out->family == 6 ? 128 : 32, &bits))
		return true;
	cni_fail(fault, CNI_INVALID_CONFIG, "prevResult is invalid",
	        "ips: \"%s\" is not an address with its prefix",
	        slice_escape(text, shown, sizeof(shown)));
	return false;
}

/* *interface: the interface of the item; NULL: none is named. False: there is no such interface. */
static bool find_interface(const json_t *interfaces, const json_t *item, const json_t **interface)
{
	const json_t *index = json_object_get(item, "interface");

	*interface = NULL;
	if (!index)
		return true;
	if (!json_is_integer(index) || json_integer_value(index) < 0)
		return false;
	*interface = json_array_get(interfaces, (size_t)json_integer_value(index));
	return *interface != NULL;
}

static bool take(struct cni_addresses *out, const struct ip *address, struct cni_fault *fault)
{
	struct ip *place = address->family == 6 ? &out->six : &out->four;

	if (place->family)
		return cni_fail(fault, CNI_CANNOT_GUARD, "the pod has too many addresses",
		        "prevResult gives it more than one IPv%d address: a pod that is to be "
		        "guarded has at most one "
		        "IPv4 and one IPv6 address",
		        address->family);
	*place = *address;
	return true;
}

bool cni_result_addresses(
        const struct cni_request *request, struct cni_addresses *out, struct cni_fault *fault)
{
	const json_t *interfaces = json_object_get(request->previous, "interfaces");
	const json_t *ips = json_object_get(request->previous, "ips"), *item, *interface;
	struct ip address;
	size_t i;

	*out = (struct cni_addresses){0};
	if (!is_list(interfaces) || !is_list(ips))
		return wrong(fault, "interfaces and ips have to be lists of at most 64");
	json_array_foreach(ips, i, item)
	{
		if (!find_interface(interfaces, item, &interface))
			return wrong(fault, "ips: an address belongs to an interface that is not "
			                    "in interfaces");
		if (!read_address(item, &address, fault))
			return false;
		if ((!interface || is_containers(request, interface)) &&
		        !take(out, &address, fault))
			return false;
	}
	return out->four.family || out->six.family ||
	       wrong(fault, "it gives no address to the container's interface: the plugin before "
	                    "vethguard-cni has to give one");
}

bool cni_result_names_host_end(const struct cni_request *request, const char *name)
{
	const json_t *interfaces = json_object_get(request->previous, "interfaces"), *interface;
	size_t i;

	json_array_foreach(interfaces, i, interface)
	{
		if (strcmp(control_text(interface, "name"), name) == 0 &&
		        !*control_text(interface, "sandbox"))
			return true;
	}
	return false;
}

/* --- writing --- */

static bool has_version_in_ips(const struct cni_request *request)
{
	return strcmp(request->version, "0.4.0") == 0;
}

static const char *gate_of(const json_t *sandbox, const char *which)
{
	return control_text(json_object_get(sandbox, "addresses"), which);
}

static bool add_text(json_t *list, const char *text)
{
	return !*text || json_array_append_new(list, json_string(text)) == 0;
}

static json_t *name_servers(const json_t *sandbox)
{
	json_t *list = json_array();

	if (list && add_text(list, gate_of(sandbox, "gate4")) &&
	        add_text(list, gate_of(sandbox, "gate6")))
		return list;
	json_decref(list);
	return NULL;
}

/* Adds the address and the default route of one family, if the sandbox has it. */
static bool add_family(const struct cni_request *request, json_t *result, const struct ip *ip,
        unsigned bits, const char *gate)
{
	char text[IP_TEXT_MAX + 4], address[IP_TEXT_MAX];
	const bool six = ip->family == 6;
	json_t *item, *route;

	if (!ip->family || !*gate)
		return true;
	snprintf(text, sizeof(text), "%s/%u", ip_format(ip, address), bits);
	item = json_pack("{s:s, s:s, s:i}", "address", text, "gateway", gate, "interface", 0);
	if (item && has_version_in_ips(request))
		json_object_set_new(item, "version", json_string(six ? "6" : "4"));
	route = json_pack("{s:s, s:s}", "dst", six ? "::/0" : "0.0.0.0/0", "gw", gate);
	/* both are taken over, also where that fails */
	const bool had = item && route;
	const bool added = json_array_append_new(json_object_get(result, "ips"), item) == 0;
	return (json_array_append_new(json_object_get(result, "routes"), route) == 0) && added &&
	       had;
}

json_t *cni_result_of_link(
        const struct cni_request *request, const struct cni_place *place, const json_t *sandbox)
{
	const uint8_t *m = place->link.mac;
	char mac[18];
	json_t *result;

	snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", m[0], m[1], m[2], m[3], m[4],
	        m[5]);
	result = json_pack("{s:s, s:[{s:s, s:s, s:s}], s:[], s:[], s:{s:o}}", "cniVersion",
	        request->version, "interfaces", "name", request->interface, "mac", mac, "sandbox",
	        request->netns, "ips", "routes", "dns", "nameservers", name_servers(sandbox));
	if (result &&
	        add_family(
	                request, result, &place->four, place->bits4, gate_of(sandbox, "gate4")) &&
	        add_family(request, result, &place->six, place->bits6, gate_of(sandbox, "gate6")))
		return result;
	json_decref(result);
	return NULL;
}

/* A result has the form of its version, whichever the plugin before has used. */
static void settle_version(const struct cni_request *request, json_t *item)
{
	if (has_version_in_ips(request))
		json_object_set_new(item, "version",
		        json_string(strchr(control_text(item, "address"), ':') ? "6" : "4"));
	else
		json_object_del(item, "version");
}

json_t *cni_result_of_previous(const struct cni_request *request, const json_t *sandbox)
{
	json_t *result = json_deep_copy(request->previous), *dns, *item;
	size_t i;

	if (!result)
		return NULL;
	json_array_foreach(json_object_get(result, "ips"), i, item)
	{
		settle_version(request, item);
	}
	dns = json_object_get(result, "dns");
	if (!json_is_object(dns)) {
		dns = json_object();
		json_object_set_new(result, "dns", dns);
	}
	if (json_object_set_new(result, "cniVersion", json_string(request->version)) == 0 &&
	        json_object_set_new(dns, "nameservers", name_servers(sandbox)) == 0)
		return result;
	json_decref(result);
	return NULL;
}
