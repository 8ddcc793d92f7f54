/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Endpoints. An endpoint is a veth pair in the host's namespace: "vgd" and twelve digits of its id
 * is the outer end, which stays; "vgc" and the same digits is the inner end, which dockerd moves
 * into the container. The alias of the outer end has the rest, so a restarted driver knows every
 * endpoint from the kernel, and a deleted endpoint leaves nothing behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/hash.h"
#include "docker/docker.h"

#define OUTER "vgd"
#define INNER "vgc"
#define PREFIX_BYTES 3
#define ALIAS_MARK "vethguard-docker"
#define ALIAS_WORDS 6
#define NOTHING "-" /* a word of the alias that is missing */
#define SHOWN_MAX 96
#define OPTION_NAME "vethguard.name"
#define OPTION_MAC_BYTES 6
#define SYSCTL_PATH_MAX 96

_Static_assert(sizeof(ALIAS_MARK) + (DOCKER_ID_MAX + 1) * 2 + sizeof("255.255.255.255/32") +
                               sizeof("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128") +
                               DOCKER_NAME_MAX <=
                       NETLINK_ALIAS_MAX,
        "an alias holds the longest endpoint");
_Static_assert(
        PREFIX_BYTES + DOCKER_ID_MIN < IFNAMSIZ, "an interface's name holds its part of the id");

static void name_links(struct docker_endpoint *endpoint)
{
	snprintf(endpoint->outer, sizeof(endpoint->outer), OUTER "%.*s", DOCKER_ID_MIN,
	        endpoint->id);
	snprintf(endpoint->inner, sizeof(endpoint->inner), INNER "%.*s", DOCKER_ID_MIN,
	        endpoint->id);
}

/* --- of a request --- */

static bool read_address(const json_t *interface, const char *key,
        const struct docker_cidr *gateway, struct docker_cidr *out, char *fault)
{
	const char *text = docker_text(interface, key, false, fault);
	char shown[SHOWN_MAX];

	if (!text)
		return false;
	if (!text[0])
		return true;
	slice_escape(slice_from_string(text), shown, sizeof(shown));
	if (!docker_cidr_parse(text, out))
		return docker_wrong(
		        fault, "%s: \"%s\" is not an address with a prefix length", key, shown);
	if (!docker_cidr_match(out, gateway) || ip_equals(&out->ip, &gateway->ip))
		return docker_wrong(fault,
		        "%s: %s is not an address for a container of this network", key, shown);
	return true;
}

/* Docker's resolver in the container (127.0.0.11) asks the host's name servers from the host's own
 * network, where no guard is, unless the container or dockerd names other ones (docs/attach.md). */
static bool check_resolver(const json_t *options, char *fault)
{
	if (json_array_size(json_object_get(options, "com.docker.network.endpoint.dnsservers")) > 0)
		return true;
	return docker_wrong(fault,
	        "start the container with --dns 192.0.2.53 (compose: dns: 192.0.2.53; any address "
	        "will do, the guard answers for it), or give dockerd a name server (\"dns\" in "
	        "/etc/docker/daemon.json): without it Docker's resolver in the container asks "
	        "the host's name server from the host's network, past the guard");
}

static bool check_ports(const json_t *options, char *fault)
{
	if (json_array_size(json_object_get(options, "com.docker.network.portmap")) == 0)
		return true;
	return docker_wrong(fault,
	        "ports cannot be published (-p, -P, compose: ports) on a network of vethguard: "
	        "nothing comes in past the guard");
}

static bool read_name(const json_t *options, const struct docker_network *network,
        struct docker_endpoint *out, char *fault)
{
	const char *name = docker_text(options, OPTION_NAME, false, fault);
	char shown[SHOWN_MAX];

	if (!name)
		return false;
	if (name[0] && !docker_name_is_plain(name, DOCKER_NAME_MAX))
		return docker_wrong(fault,
		        OPTION_NAME
		        "=%s: a name has up to %d letters, digits, '.', '_' and '-', and "
		        "begins with a letter or digit",
		        slice_escape(slice_from_string(name), shown, sizeof(shown)),
		        DOCKER_NAME_MAX);
	if (name[0])
		snprintf(out->name, sizeof(out->name), "%s", name);
	else
		snprintf(out->name, sizeof(out->name), "%s-%.*s", network->prefix, DOCKER_ID_MIN,
		        out->id);
	return true;
}

bool docker_endpoint_read(const json_t *body, const struct docker_network *network,
        struct docker_endpoint *out, char *fault)
{
	const json_t *interface = json_object_get(body, "Interface");
	const json_t *options = json_object_get(body, "Options");

	*out = (struct docker_endpoint){.id = ""};
	if (!docker_id(body, "NetworkID", out->network, fault) ||
	        !docker_id(body, "EndpointID", out->id, fault))
		return false;
	name_links(out);
	if (!json_is_object(interface))
		return docker_wrong(fault, "Interface: has to be an object");
	if (options && !json_is_null(options) && !json_is_object(options))
		return docker_wrong(fault, "Options: has to be an object");
	if (!read_address(interface, "Address", &network->gateway4, &out->address4, fault) ||
	        !read_address(interface, "AddressIPv6", &network->gateway6, &out->address6, fault))
		return false;
	if (!out->address4.text[0] && !out->address6.text[0])
		return docker_wrong(
		        fault, "Interface: an address is needed; dockerd's own IPAM gives one");
	return read_name(options, network, out, fault) && check_resolver(options, fault) &&
	       check_ports(options, fault);
}

bool docker_endpoint_mac(const json_t *body, uint8_t out[6], char *fault)
{
	const char *text =
	        docker_text(json_object_get(body, "Interface"), "MacAddress", false, fault);
	unsigned bytes[OPTION_MAC_BYTES];
	char rest, shown[SHOWN_MAX];

	if (!text || !text[0])
		return false;
	if (strlen(text) != 17 ||
	        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%c", &bytes[0], &bytes[1], &bytes[2],
	                &bytes[3], &bytes[4], &bytes[5], &rest) != OPTION_MAC_BYTES ||
	        (bytes[0] & 1))
		return docker_wrong(fault, "MacAddress: \"%s\" is not an interface's address",
		        slice_escape(slice_from_string(text), shown, sizeof(shown)));
	for (size_t i = 0; i < OPTION_MAC_BYTES; i++)
		out[i] = (uint8_t)bytes[i];
	return true;
}

/* --- the alias --- */

static const char *word_of(const char *text)
{
	return text[0] ? text : NOTHING;
}

void docker_endpoint_describe(const struct docker_endpoint *e, char out[NETLINK_ALIAS_MAX + 1])
{
	if (snprintf(out, NETLINK_ALIAS_MAX + 1, ALIAS_MARK " %s %s %s %s %s", e->id, e->network,
	            word_of(e->address4.text), word_of(e->address6.text),
	            e->name) > NETLINK_ALIAS_MAX)
		out[0] = 0; /* never: see the assertion */
}

/* Divides text at its spaces. False: it has another number of words. */
static bool divide(char *text, char *words[ALIAS_WORDS])
{
	size_t count = 0;
	char *place = NULL;

	for (char *word = strtok_r(text, " ", &place); word; word = strtok_r(NULL, " ", &place)) {
		if (count == ALIAS_WORDS)
			return false;
		words[count++] = word;
	}
	return count == ALIAS_WORDS;
}

static bool take_id(const char *text, char out[DOCKER_ID_MAX + 1])
{
	const size_t n = strlen(text);

	if (n < DOCKER_ID_MIN || n > DOCKER_ID_MAX || strspn(text, "0123456789abcdef") != n)
		return false;
	memcpy(out, text, n + 1);
	return true;
}

static bool take_address(const char *text, int family, struct docker_cidr *out)
{
	return strcmp(text, NOTHING) == 0 ||
	       (docker_cidr_parse(text, out) && out->ip.family == family);
}

bool docker_endpoint_parse(const char *alias, struct docker_endpoint *out)
{
	char text[NETLINK_ALIAS_MAX + 1], *words[ALIAS_WORDS];

	*out = (struct docker_endpoint){.id = ""};
	if (snprintf(text, sizeof(text), "%s", alias) >= (int)sizeof(text) ||
	        !divide(text, words) || strcmp(words[0], ALIAS_MARK) != 0 ||
	        !take_id(words[1], out->id) || !take_id(words[2], out->network) ||
	        !take_address(words[3], 4, &out->address4) ||
	        !take_address(words[4], 6, &out->address6) ||
	        !docker_name_is_plain(words[5], DOCKER_NAME_MAX))
		return false;
	snprintf(out->name, sizeof(out->name), "%s", words[5]);
	name_links(out);
	return out->address4.text[0] || out->address6.text[0];
}

bool docker_endpoint_is_outer(const char *interface)
{
	return strncmp(interface, OUTER, PREFIX_BYTES) == 0 &&
	       strlen(interface) == PREFIX_BYTES + DOCKER_ID_MIN &&
	       strspn(interface + PREFIX_BYTES, "0123456789abcdef") == DOCKER_ID_MIN;
}

bool docker_endpoint_at(struct docker *docker, const char *interface, struct docker_endpoint *out)
{
	char alias[NETLINK_ALIAS_MAX + 1];

	return docker_endpoint_is_outer(interface) &&
	       netlink_link_alias(docker->nl, interface, alias) == 0 &&
	       docker_endpoint_parse(alias, out) && strcmp(out->outer, interface) == 0;
}

int docker_endpoint_find(struct docker *docker, const char *id, struct docker_endpoint *out)
{
	char alias[NETLINK_ALIAS_MAX + 1];
	struct docker_endpoint wanted = {.id = ""};
	int rc;

	snprintf(wanted.id, sizeof(wanted.id), "%s", id);
	name_links(&wanted);
	rc = netlink_link_alias(docker->nl, wanted.outer, alias);
	if (rc)
		return rc == -ENODEV ? -ENOENT : rc;
	return docker_endpoint_parse(alias, out) && strcmp(out->id, id) == 0 ? 0 : -EEXIST;
}

/* --- the pair --- */

static void set(const char *family, const char *interface, const char *name, const char *value)
{
	char path[SYSCTL_PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "/proc/sys/net/%s/conf/%s/%s", family, interface, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, value, strlen(value));
	close(fd);
}

/* A second protection, in case somebody removes the guard while the container runs (sweep.c is the
 * third): the host's own stack does not forward packets that come in on this interface. */
static void make_inert(const char *outer)
{
	set("ipv4", outer, "forwarding", "0");
	set("ipv4", outer, "rp_filter", "1");
	set("ipv4", outer, "accept_local", "0");
	set("ipv6", outer, "disable_ipv6", "1");
}

void docker_endpoint_random_mac(uint8_t mac[6])
{
	random_bytes(mac, 6);
	mac[0] = (uint8_t)((mac[0] & 0xfe) | 0x02);
}

int docker_endpoint_make(
        struct docker *docker, const struct docker_endpoint *endpoint, const uint8_t mac[6])
{
	char alias[NETLINK_ALIAS_MAX + 1];
	uint8_t own[6];
	int rc;

	docker_endpoint_describe(endpoint, alias);
	docker_endpoint_random_mac(own);
	rc = netlink_veth_add(
	        docker->nl, endpoint->outer, own, endpoint->inner, mac, docker->netns);
	if (rc)
		return rc;
	rc = netlink_link_set_alias(docker->nl, endpoint->outer, alias);
	if (!rc)
		rc = netlink_link_no_ipv6(docker->nl, endpoint->outer);
	make_inert(endpoint->outer);
	if (rc)
		netlink_link_delete(docker->nl, endpoint->outer);
	return rc;
}
