/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls of libnetwork's remote driver. Each may come twice, out of order, or for something that
 * is long gone. So creating what exists and removing what is gone succeed. Only Join needs
 * everything, and is answered when the guard is in force.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "docker/docker.h"

#define STATUS_OK 200
#define STATUS_BAD 400
#define STATUS_NOT_FOUND 404
#define STATUS_REFUSED 422
#define STATUS_FAILED 500
#define MAC_TEXT_MAX 18
#define SHOWN_MAX 128

struct call {
	struct docker *docker;
	const json_t *body;
	json_t *answer;
	char fault[DOCKER_FAULT_MAX];
};

struct route {
	const char *target;
	bool (*run)(struct call *call);
};

static bool failed(struct call *call, const char *what, int rc)
{
	return docker_wrong(call->fault, "%s: %s", what, strerror(-rc));
}

static void put(struct call *call, const char *key, json_t *value)
{
	json_object_set_new(call->answer, key, value);
}

/* --- the driver --- */

static bool activate(struct call *call)
{
	put(call, "Implements", json_pack("[s]", "NetworkDriver"));
	return true;
}

static bool capabilities(struct call *call)
{
	put(call, "Scope", json_string("local"));
	put(call, "ConnectivityScope", json_string("local"));
	return true;
}

static bool nothing(struct call *call)
{
	(void)call;
	return true;
}

static bool unsupported(struct call *call)
{
	return docker_wrong(
	        call->fault, "networks of vethguard exist on one host only: swarm cannot use them");
}

/* --- networks --- */

static bool create_network(struct call *call)
{
	struct docker_network network;
	char path[PATH_MAX], why[POLICY_NAME_FAULT_MAX];
	int rc;

	if (!docker_network_read(call->body, &network, call->fault))
		return false;
	if (!policy_name_resolve(call->docker->policies, network.policy, path, why)) {
		docker_network_fini(&network);
		return docker_wrong(call->fault, "%s", why);
	}
	rc = docker_network_save(call->docker->state, &network);
	if (!rc)
		log_info("network %.12s: policy %s", network.id, network.policy);
	docker_network_fini(&network);
	return !rc || failed(call, "the file of the network", rc);
}

static bool delete_network(struct call *call)
{
	char id[DOCKER_ID_MAX + 1];
	int rc;

	if (!docker_id(call->body, "NetworkID", id, call->fault))
		return false;
	rc = docker_network_remove(call->docker->state, id);
	return !rc || failed(call, "the file of the network", rc);
}

static bool load_network(struct call *call, struct docker_network *out)
{
	char id[DOCKER_ID_MAX + 1];
	int rc;

	if (!docker_id(call->body, "NetworkID", id, call->fault))
		return false;
	rc = docker_network_load(call->docker->state, id, out);
	if (rc == -ENOENT)
		return docker_wrong(call->fault,
		        "the network %.12s is not known here: remove and create it anew", id);
	if (rc == -EBADMSG)
		return docker_wrong(call->fault,
		        "%s/%s.json is damaged: remove the network and create it anew",
		        call->docker->state, id);
	return !rc || failed(call, "the file of the network", rc);
}

/* --- endpoints --- */

/* Puts the MAC into the answer only if the request named none: otherwise dockerd accepts only its
 * own. */
static void put_mac(struct call *call, const uint8_t mac[6])
{
	char text[MAC_TEXT_MAX];

	snprintf(text, sizeof(text), "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2],
	        mac[3], mac[4], mac[5]);
	put(call, "Interface", json_pack("{ss}", "MacAddress", text));
}

/* A second CreateEndpoint: the same endpoint, which no container has yet. */
static bool is_same(struct call *call, const struct docker_endpoint *asked,
        const struct docker_endpoint *found, struct netlink_link *inner)
{
	char wanted[NETLINK_ALIAS_MAX + 1], is[NETLINK_ALIAS_MAX + 1];

	docker_endpoint_describe(asked, wanted);
	docker_endpoint_describe(found, is);
	return (strcmp(wanted, is) == 0 &&
	               netlink_link_get(call->docker->nl, asked->inner, 0, inner) == 0) ||
	       docker_wrong(call->fault, "the endpoint %.12s exists already", asked->id);
}

static bool make_endpoint(struct call *call, const struct docker_endpoint *endpoint)
{
	struct docker_endpoint found;
	struct netlink_link inner;
	uint8_t mac[6];
	bool is_given = docker_endpoint_mac(call->body, mac, call->fault);
	int rc;

	if (!is_given && call->fault[0])
		return false;
	rc = docker_endpoint_find(call->docker, endpoint->id, &found);
	if (rc == 0) {
		if (!is_same(call, endpoint, &found, &inner))
			return false;
		memcpy(mac, inner.mac, sizeof(mac));
	} else if (rc == -ENOENT) {
		if (!is_given)
			docker_endpoint_random_mac(mac);
		rc = docker_endpoint_make(call->docker, endpoint, mac);
	}
	if (rc)
		return failed(call, "the interfaces of the endpoint", rc);
	if (!is_given)
		put_mac(call, mac);
	return true;
}

static bool create_endpoint(struct call *call)
{
	struct docker_network network;
	struct docker_endpoint endpoint;
	bool good;

	if (!load_network(call, &network))
		return false;
	good = docker_endpoint_read(call->body, &network, &endpoint, call->fault) &&
	       make_endpoint(call, &endpoint);
	docker_network_fini(&network);
	return good;
}

/* Shuts the link before its guard goes, so that processes that are still inside reach nobody. */
static bool shut(struct call *call, const char *outer)
{
	int rc = netlink_link_down(call->docker->nl, outer);

	if (rc && rc != -ENODEV)
		return failed(call, "shutting the endpoint's interface", rc);
	if (!docker_guard_detach(call->docker, outer))
		log_warn("%s: vethguardd does not answer; its guard is ended later", outer);
	return true;
}

static bool find_endpoint(struct call *call, struct docker_endpoint *out, bool *is_there)
{
	char id[DOCKER_ID_MAX + 1], network[DOCKER_ID_MAX + 1];
	int rc;

	*is_there = false;
	if (!docker_id(call->body, "NetworkID", network, call->fault) ||
	        !docker_id(call->body, "EndpointID", id, call->fault))
		return false;
	rc = docker_endpoint_find(call->docker, id, out);
	if (rc == -ENOENT)
		return true;
	if (rc)
		return failed(call, "finding the endpoint", rc);
	if (strcmp(out->network, network) != 0)
		return docker_wrong(
		        call->fault, "the endpoint %.12s is of another network", out->id);
	*is_there = true;
	return true;
}

static bool delete_endpoint(struct call *call)
{
	struct docker_endpoint endpoint;
	bool is_there;
	int rc;

	if (!find_endpoint(call, &endpoint, &is_there))
		return false;
	if (!is_there)
		return true;
	if (!shut(call, endpoint.outer))
		return false;
	rc = netlink_link_delete(call->docker->nl, endpoint.outer);
	return !rc || rc == -ENODEV || failed(call, "removing the endpoint's interfaces", rc);
}

static bool operational(struct call *call)
{
	put(call, "Value", json_object());
	return true;
}

/* --- joining --- */

static void add_route(json_t *routes, const char *destination, const struct docker_cidr *gateway)
{
	char text[IP_TEXT_MAX];

	json_array_append_new(
	        routes, json_pack("{ss si ss}", "Destination", destination, "RouteType", 0,
	                        "NextHop", ip_format(&gateway->ip, text)));
}

/* Two halves instead of a default route. dockerd counts a network with a gateway among those by
 * which its resolver may ask the host's name servers from the host; with a network without one it
 * would connect the container to a bridge of its own if DisableGatewayService did not forbid it.
 * Halves also go before the default route of another network. */
static void answer_join(struct call *call, const struct docker_network *network,
        const struct docker_endpoint *endpoint)
{
	json_t *routes = json_array();

	if (endpoint->address4.text[0]) {
		add_route(routes, "0.0.0.0/1", &network->gateway4);
		add_route(routes, "128.0.0.0/1", &network->gateway4);
	}
	if (endpoint->address6.text[0]) {
		add_route(routes, "::/1", &network->gateway6);
		add_route(routes, "8000::/1", &network->gateway6);
	}
	put(call, "InterfaceName",
	        json_pack("{ss ss}", "SrcName", endpoint->inner, "DstPrefix", "eth"));
	put(call, "StaticRoutes", routes);
	put(call, "DisableGatewayService", json_true());
}

static bool guard(struct call *call, const struct docker_network *network,
        const struct docker_endpoint *endpoint)
{
	int rc;

	if (!docker_guard_attach(call->docker, network, endpoint, call->fault))
		return false;
	rc = netlink_link_up(call->docker->nl, endpoint->outer);
	if (!rc) {
		answer_join(call, network, endpoint);
		return true;
	}
	docker_guard_detach(call->docker, endpoint->outer);
	return failed(call, "the endpoint's interface", rc);
}

static bool join(struct call *call)
{
	struct docker_network network;
	struct docker_endpoint endpoint;
	bool is_there, good;

	if (!find_endpoint(call, &endpoint, &is_there))
		return false;
	if (!is_there)
		return docker_wrong(call->fault, "there is no such endpoint");
	if (!load_network(call, &network))
		return false;
	good = guard(call, &network, &endpoint);
	docker_network_fini(&network);
	return good;
}

static bool leave(struct call *call)
{
	struct docker_endpoint endpoint;
	bool is_there;

	if (!find_endpoint(call, &endpoint, &is_there))
		return false;
	return !is_there || shut(call, endpoint.outer);
}

static const struct route routes[] = {
        {"/Plugin.Activate", activate},
        {"/NetworkDriver.GetCapabilities", capabilities},
        {"/NetworkDriver.AllocateNetwork", unsupported},
        {"/NetworkDriver.FreeNetwork", unsupported},
        {"/NetworkDriver.CreateNetwork", create_network},
        {"/NetworkDriver.DeleteNetwork", delete_network},
        {"/NetworkDriver.CreateEndpoint", create_endpoint},
        {"/NetworkDriver.DeleteEndpoint", delete_endpoint},
        {"/NetworkDriver.EndpointOperInfo", operational},
        {"/NetworkDriver.Join", join},
        {"/NetworkDriver.Leave", leave},
        {"/NetworkDriver.DiscoverNew", nothing},
        {"/NetworkDriver.DiscoverDelete", nothing},
        {"/NetworkDriver.ProgramExternalConnectivity", nothing},
        {"/NetworkDriver.RevokeExternalConnectivity", nothing},
};

static const struct route *find_route(struct slice target)
{
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++)
		if (slice_equals(target, slice_from_string(routes[i].target)))
			return &routes[i];
	return NULL;
}

/* Without a body dockerd asks only what the driver is. */
static bool needs_body(const struct route *route)
{
	return route->run != activate && route->run != capabilities;
}

static unsigned run(struct call *call, const struct route *route, const char *body_fault)
{
	if (needs_body(route) && !call->body) {
		docker_wrong(call->fault, "%s", body_fault);
		return STATUS_BAD;
	}
	return route->run(call) ? STATUS_OK : STATUS_REFUSED;
}

unsigned docker_call(struct docker *docker, struct slice target, const json_t *body,
        const char *body_fault, json_t **answer)
{
	struct call call = {.docker = docker, .body = body, .answer = json_object()};
	const struct route *route = find_route(target);
	char shown[SHOWN_MAX];
	unsigned status = STATUS_NOT_FOUND;

	slice_escape(target, shown, sizeof(shown));
	if (route)
		status = run(&call, route, body_fault);
	else
		docker_wrong(call.fault, "%s: this driver has no such call", shown);
	if (status != STATUS_OK) {
		json_object_clear(call.answer);
		put(&call, "Err", json_string(call.fault));
		log_warn("%s: %s", shown, call.fault);
	} else {
		log_debug("%s: done", shown);
	}
	*answer = call.answer;
	return call.answer ? status : STATUS_FAILED;
}
