/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docker: a network driver for Docker (libnetwork's remote driver). dockerd asks by JSON over a
 * Unix socket. Each container on such a network gets a veth pair of its own whose outer end the
 * daemon guards before dockerd hears the inner end's name.
 *
 * Kept here: one file for each network (network.c), because dockerd tells a network's options only
 * once. What is known of an endpoint is the alias of its outer link (endpoint.c), and its guard is
 * the daemon's (guard.c). So the service may be killed at any time.
 */
#ifndef VETHGUARD_SRC_DOCKER_DOCKER_H
#define VETHGUARD_SRC_DOCKER_DOCKER_H

#include <jansson.h>
#include <net/if.h>

#include "vethguard/adapter/policy_name.h"
#include "vethguard/base/ip.h"
#include "vethguard/loop/http_server.h"
#include "vethguard/netlink/netlink.h"

#define DOCKER_SOCKET_DEFAULT "/run/docker/plugins/vethguard.sock"
#define DOCKER_STATE_DEFAULT "/var/lib/vethguard-docker"
#define DOCKER_ID_MAX 64   /* hexadecimal digits of a network's or an endpoint's id */
#define DOCKER_ID_MIN 12   /* as many as fit into an interface's name */
#define DOCKER_NAME_MAX 40 /* bytes of a sandbox's name; the alias of the link has to hold it */
#define DOCKER_PREFIX_MAX (DOCKER_NAME_MAX - 1 - DOCKER_ID_MIN)
#define DOCKER_CIDR_MAX (IP_TEXT_MAX + 4) /* "ADDRESS/BITS" */
#define DOCKER_OPTION_KEY_MAX 127
#define DOCKER_OPTION_VALUE_MAX 4096
#define DOCKER_LABELS_MAX 30 /* the daemon takes 32; two are the driver's own */
#define DOCKER_VARS_MAX 64
#define DOCKER_TTL_MAX_S 31622400u
#define DOCKER_FAULT_MAX 2048
#define DOCKER_UNJOINED_MAX \
	16 /* bound on the endpoints that are counted at a time; others are counted later */

/* Labels of its sandboxes. */
#define DOCKER_LABEL_NETWORK "docker.network"
#define DOCKER_LABEL_ENDPOINT "docker.endpoint"

/* An endpoint that no container has joined yet. */
struct docker_unjoined {
	char id[DOCKER_ID_MAX + 1]; /* "": none */
	unsigned rounds;            /* how many sweeps have seen it */
	bool seen;                  /* seen in this sweep */
};

struct docker {
	struct http_handler handler;
	struct http_server *server;
	struct loop *loop;
	struct netlink *nl;
	int netns;                    /* the namespace in which pairs are created */
	const char *control;          /* the daemon's socket */
	const char *policies, *state; /* directories */
	struct loop_timer sweep;      /* sweep.c */
	struct docker_unjoined unjoined[DOCKER_UNJOINED_MAX];
	json_t *warned; /* by endpoint: those that other_ways.c has warned of */
};

/* An address with its network, as dockerd writes it. text "": none. */
struct docker_cidr {
	struct ip ip;
	uint8_t bits;
	char text[DOCKER_CIDR_MAX];
};

struct docker_network {
	char id[DOCKER_ID_MAX + 1];
	char policy[POLICY_FILE_NAME_MAX + 1];
	char prefix[DOCKER_PREFIX_MAX + 1]; /* of its sandboxes' names */
	struct docker_cidr gateway4, gateway6;
	uint32_t ttl_s; /* 0: none */
	bool observe;
	json_t *labels, *vars; /* owned objects of strings */
};

struct docker_endpoint {
	char network[DOCKER_ID_MAX + 1], id[DOCKER_ID_MAX + 1];
	char name[DOCKER_NAME_MAX + 1]; /* of the sandbox */
	struct docker_cidr address4, address6;
	char outer[IFNAMSIZ], inner[IFNAMSIZ]; /* of its pair */
};

/* text.c. fault: a sentence for the people who see dockerd's error. */
bool docker_wrong(char fault[DOCKER_FAULT_MAX], const char *format, ...)
        __attribute__((format(printf, 2, 3)));
/* A member that has to be a string; "" if it is missing or null and optional. NULL: fault says
 * why. */
const char *docker_text(const json_t *object, const char *key, bool required, char *fault);
/* Copies an id to out. */
bool docker_id(const json_t *body, const char *key, char out[DOCKER_ID_MAX + 1], char *fault);
bool docker_cidr_parse(const char *text, struct docker_cidr *out);
/* Two addresses are of one network. */
bool docker_cidr_match(const struct docker_cidr *a, const struct docker_cidr *b);
/* True for a name that a sandbox may have, or the beginning of one. */
bool docker_name_is_plain(const char *name, size_t max);

/* network.c */
bool docker_network_read(const json_t *body, struct docker_network *out, char *fault);
void docker_network_fini(struct docker_network *network);
/* The file of a network. save replaces it; removing a file that does not exist is no failure.
 * Return 0 or -errno; load: -ENOENT: there is none, -EBADMSG: it is damaged. */
int docker_network_save(const char *state, const struct docker_network *network);
int docker_network_load(const char *state, const char *id, struct docker_network *out);
int docker_network_remove(const char *state, const char *id);
/* options.c: the options of -o. */
bool docker_options_read(const json_t *options, struct docker_network *network, char *fault);

/* endpoint.c */
bool docker_endpoint_read(const json_t *body, const struct docker_network *network,
        struct docker_endpoint *out, char *fault);
/* The MAC that the request asks for. False: none, or one that no interface can have (fault is not
 * ""). */
bool docker_endpoint_mac(const json_t *body, uint8_t out[6], char *fault);
/* Finds an endpoint by its link. Returns 0; -ENOENT: there is none; -EEXIST: the link belongs to
 * another endpoint; or another -errno. */
int docker_endpoint_find(struct docker *docker, const char *id, struct docker_endpoint *out);
/* True for the name of an outer end. */
bool docker_endpoint_is_outer(const char *interface);
/* Fills in what the alias of the interface says. Returns false if it is not an outer end of this
 * driver's pairs. */
bool docker_endpoint_at(struct docker *docker, const char *interface, struct docker_endpoint *out);
void docker_endpoint_random_mac(uint8_t mac[6]);
/* Makes the pair, whose outer end stays down. Returns 0 or -errno, and then nothing is left. */
int docker_endpoint_make(
        struct docker *docker, const struct docker_endpoint *endpoint, const uint8_t mac[6]);
/* Writes what the alias of the outer end says of it, or reads that. */
void docker_endpoint_describe(
        const struct docker_endpoint *endpoint, char out[NETLINK_ALIAS_MAX + 1]);
bool docker_endpoint_parse(const char *alias, struct docker_endpoint *out);

/* guard.c: the daemon. */
bool docker_guard_attach(struct docker *docker, const struct docker_network *network,
        const struct docker_endpoint *endpoint, char *fault);
/* Ends the guard of an outer end, if there is one. False: the daemon does not do it now. */
bool docker_guard_detach(struct docker *docker, const char *outer);
/* The sandboxes that are attached to outer ends: a new array, or NULL with fault. */
json_t *docker_guard_list(struct docker *docker, char *fault);
const char *docker_guard_interface(const json_t *sandbox); /* the outer end, or "" */

/* calls.c: answers one call. Returns the status; *answer is owned and never NULL unless out of
 * memory. */
unsigned docker_call(struct docker *docker, struct slice target, const json_t *body,
        const char *body_fault, json_t **answer);

/* service.c */
int docker_service_open(struct docker *docker, int fd);

/* sweep.c: repairs what no call repairs. */
int docker_sweep_open(struct docker *docker);

/* other_ways.c: warns once of interfaces in an endpoint's container that are not the driver's.
 * outer: the endpoint's outer end, whose inner end is in the container. */
void docker_other_ways(struct docker *docker, const struct docker_endpoint *endpoint,
        const struct netlink_link *outer);
/* Forgets the warnings of endpoints that are gone. */
void docker_other_ways_tidy(struct docker *docker);

#endif
