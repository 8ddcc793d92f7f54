/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Networks. dockerd tells the options of a network only when it is created. It does not repeat them
 * when dockerd or the machine is started again. So each network has a file, named by the network's
 * id. A file is written beside its place and renamed: a killed service leaves the old one or the
 * new one.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "docker/docker.h"
#include "vethguard/base/fd.h"

#define FILE_MODE 0600
#define PART ".part"              /* beside its place */
#define FILE_BYTES_MAX (1u << 20) /* more than 94 options of the longest kind */
#define OPTIONS_KEY "com.docker.network.generic"
#define INTERNAL_KEY "com.docker.network.internal"
#define BITS_MAX4 30
#define BITS_MAX6 126

void docker_network_fini(struct docker_network *network)
{
	json_decref(network->labels);
	json_decref(network->vars);
	network->labels = network->vars = NULL;
}

/* True for the first address of the pool, as which the guard answers. No interface of the host
 * needs to have it. */
static bool is_first(const struct docker_cidr *gateway)
{
	const unsigned size = gateway->ip.family == 6 ? 16 : 4;
	struct ip first = gateway->ip;

	for (unsigned i = gateway->bits; i < size * 8; i++)
		first.bytes[i / 8] &= (uint8_t) ~(0x80 >> i % 8);
	first.bytes[size - 1] |= 1;
	return ip_equals(&first, &gateway->ip);
}

static bool read_pool(const json_t *pools, int family, struct docker_cidr *out, char *fault)
{
	const json_t *pool = json_array_get(pools, 0);
	const char *text;

	if (pools && !json_is_null(pools) && !json_is_array(pools))
		return docker_wrong(fault, "IPv%dData: has to be an array", family);
	if (json_array_size(pools) == 0)
		return true;
	if (json_array_size(pools) > 1)
		return docker_wrong(
		        fault, "more than one subnet of IPv%d: one is possible", family);
	text = docker_text(pool, "Gateway", false, fault);
	if (!text)
		return false;
	if (!docker_cidr_parse(text, out) || out->ip.family != family)
		return docker_wrong(fault,
		        "IPv%dData: its gateway is not an address with a prefix length", family);
	if (out->bits > (family == 4 ? BITS_MAX4 : BITS_MAX6) || out->bits == 0)
		return docker_wrong(fault, "the subnet of %s is too small or too large", out->text);
	if (!is_first(out))
		return docker_wrong(fault,
		        "the gateway has to be the first address of the subnet, and %s is not: "
		        "leave --gateway and --ip-range away, or set both so",
		        out->text);
	return true;
}

static bool read_request(const json_t *body, struct docker_network *out, char *fault)
{
	const json_t *options = json_object_get(body, "Options");

	if (!docker_id(body, "NetworkID", out->id, fault))
		return false;
	if (options && !json_is_null(options) && !json_is_object(options))
		return docker_wrong(fault, "Options: has to be an object");
	if (json_is_true(json_object_get(options, INTERNAL_KEY)))
		return docker_wrong(fault, "--internal cannot be used with vethguard: its networks "
		                           "have no way out but "
		                           "the guard in any case; create it without");
	if (!docker_options_read(json_object_get(options, OPTIONS_KEY), out, fault) ||
	        !read_pool(json_object_get(body, "IPv4Data"), 4, &out->gateway4, fault) ||
	        !read_pool(json_object_get(body, "IPv6Data"), 6, &out->gateway6, fault))
		return false;
	return out->gateway4.text[0] || out->gateway6.text[0] ||
	       docker_wrong(fault, "a network without a subnet cannot be guarded");
}

bool docker_network_read(const json_t *body, struct docker_network *out, char *fault)
{
	*out = (struct docker_network){.labels = json_object(), .vars = json_object()};
	if (!out->labels || !out->vars)
		docker_wrong(fault, "no memory");
	else if (read_request(body, out, fault))
		return true;
	docker_network_fini(out);
	return false;
}

static int path_of(const char *state, const char *id, const char *end, char out[PATH_MAX])
{
	return snprintf(out, PATH_MAX, "%s/%s%s", state, id, end) < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	int rc = fd < 0 ? -errno : 0;

	if (!rc)
		rc = fd_write_all(fd, slice_from_string(text));
	if (!rc && fsync(fd) < 0)
		rc = -errno;
	if (fd >= 0 && close(fd) < 0 && !rc)
		rc = -errno;
	return rc;
}

int docker_network_save(const char *state, const struct docker_network *n)
{
	char path[PATH_MAX] = "", part[PATH_MAX] = "";
	json_t *all = json_pack("{ss ss ss ss sI sb sO sO}", "policy", n->policy, "name", n->prefix,
	        "gateway4", n->gateway4.text, "gateway6", n->gateway6.text, "ttl_s",
	        (json_int_t)n->ttl_s, "observe", (int)n->observe, "labels", n->labels, "vars",
	        n->vars);
	char *text = all ? json_dumps(all, JSON_INDENT(2)) : NULL;
	int rc = text ? path_of(state, n->id, ".json", path) : -ENOMEM;

	if (!rc)
		rc = path_of(state, n->id, PART, part);
	if (!rc) {
		rc = write_file(part, text);
		if (!rc && rename(part, path) < 0)
			rc = -errno;
		if (rc)
			unlink(part);
	}
	free(text);
	json_decref(all);
	return rc;
}

static bool copy(char *to, size_t size, const char *from)
{
	return snprintf(to, size, "%s", from) < (int)size;
}

static bool are_texts(const json_t *pairs)
{
	json_t *all = (json_t *)(uintptr_t)pairs;

	for (void *at = json_object_iter(all); at; at = json_object_iter_next(all, at))
		if (!json_is_string(json_object_iter_value(at)))
			return false;
	return true;
}

/* A member that has to be an object of strings. */
static bool take_pairs(const json_t *all, const char *key, json_t **out)
{
	*out = json_incref(json_object_get(all, key));
	return json_is_object(*out) && are_texts(*out);
}

static bool take_gateway(const json_t *all, const char *key, struct docker_cidr *out)
{
	const char *text = json_string_value(json_object_get(all, key));

	return text && (!text[0] || docker_cidr_parse(text, out));
}

static bool take_file(const json_t *all, struct docker_network *n)
{
	const char *policy = json_string_value(json_object_get(all, "policy"));
	const char *name = json_string_value(json_object_get(all, "name"));
	const json_t *ttl = json_object_get(all, "ttl_s");
	bool are_pairs = take_pairs(all, "labels", &n->labels);

	are_pairs = take_pairs(all, "vars", &n->vars) && are_pairs;
	if (!are_pairs || !policy || !name || !json_is_integer(ttl) ||
	        json_integer_value(ttl) < 0 || json_integer_value(ttl) > DOCKER_TTL_MAX_S)
		return false;
	n->ttl_s = (uint32_t)json_integer_value(ttl);
	n->observe = json_is_true(json_object_get(all, "observe"));
	return copy(n->policy, sizeof(n->policy), policy) && policy_name_is_valid(n->policy) &&
	       copy(n->prefix, sizeof(n->prefix), name) &&
	       docker_name_is_plain(n->prefix, DOCKER_PREFIX_MAX) &&
	       take_gateway(all, "gateway4", &n->gateway4) &&
	       take_gateway(all, "gateway6", &n->gateway6) &&
	       (n->gateway4.text[0] || n->gateway6.text[0]);
}

static int read_file(const char *path, char **out, size_t *size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	ssize_t n;

	*out = NULL;
	*size = 0;
	if (fd < 0)
		return -errno;
	*out = malloc(FILE_BYTES_MAX);
	do {
		n = *out ? read(fd, *out + *size, FILE_BYTES_MAX - *size) : -1;
		*size += n > 0 ? (size_t)n : 0;
	} while (n > 0 && *size < FILE_BYTES_MAX);
	close(fd);
	return n < 0 ? -EIO : 0;
}

int docker_network_load(const char *state, const char *id, struct docker_network *out)
{
	char path[PATH_MAX], *text = NULL;
	size_t size = 0;
	json_t *all;
	int rc = path_of(state, id, ".json", path);

	*out = (struct docker_network){.ttl_s = 0};
	snprintf(out->id, sizeof(out->id), "%s", id);
	if (!rc)
		rc = read_file(path, &text, &size);
	if (!rc) {
		all = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
		rc = all && take_file(all, out) ? 0 : -EBADMSG;
		json_decref(all);
	}
	free(text);
	if (rc)
		docker_network_fini(out);
	return rc;
}

int docker_network_remove(const char *state, const char *id)
{
	char path[PATH_MAX], part[PATH_MAX];
	int rc = path_of(state, id, PART, part);

	if (!rc)
		rc = path_of(state, id, ".json", path);
	if (rc)
		return rc;
	unlink(part); /* of a service that was killed */
	return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
