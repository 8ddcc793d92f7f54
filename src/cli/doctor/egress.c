/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor --config: checks that the configuration is sound and that its proxy (egress.proxy) accepts
 * a connection from here, from the interface and address that the configuration names. Nothing is
 * sent to the proxy.
 */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "vethguard/policy/config.h"

/* Connects and closes. Returns 0 or -errno. */
static int try_connect(const struct config *c, const struct ip *address)
{
	const struct config_egress *e = &c->egress;
	const struct ip *source = address->family == 4 ? &e->address4 : &e->address6;
	struct sockaddr_storage to, from;
	socklen_t n = ip_to_sockaddr(address, e->proxy_port, &to), error_n = sizeof(int);
	int fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	struct pollfd ready = {.fd = fd, .events = POLLOUT};

	if (fd < 0)
		return -errno;
	if (e->interface[0] && setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, e->interface,
	                               (socklen_t)strlen(e->interface)) < 0)
		error = errno;
	else if (source->family &&
	         bind(fd, (struct sockaddr *)&from, ip_to_sockaddr(source, 0, &from)) < 0)
		error = errno;
	else if (!source->family && (e->address4.family || e->address6.family))
		error = EADDRNOTAVAIL;
	else if (connect(fd, (struct sockaddr *)&to, n) < 0 && errno != EINPROGRESS)
		error = errno;
	else if (poll(&ready, 1, (int)c->timeouts.connect_ms) <= 0)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &error_n) < 0)
		error = errno;
	close(fd);
	return -error;
}

/* Resolves the name by the configuration's own hosts, else as this machine does. Returns -ENOENT if
 * there is no address. */
static int try_name(const struct config *c)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
	struct addrinfo *found = NULL;
	int rc = -ENOENT;

	for (size_t i = 0; i < c->host_count && rc != 0; i++)
		if (strcmp(c->hosts[i].name, c->egress.proxy_host) == 0)
			rc = try_connect(c, &c->hosts[i].address);
	if (rc != -ENOENT || getaddrinfo(c->egress.proxy_host, NULL, &hints, &found) != 0)
		return rc;
	for (const struct addrinfo *a = found; a && rc != 0; a = a->ai_next) {
		struct ip address = ip_from_sockaddr(a->ai_addr, NULL);

		rc = try_connect(c, &address);
	}
	freeaddrinfo(found);
	return rc;
}

static const char *remedy(int rc)
{
	switch (-rc) {
	case ENOENT:
		return "Its name has no address here: correct the name in egress.proxy, or give "
		       "its address in resolver.hosts.";
	case ECONNREFUSED:
		return "Nothing listens there: check the host and port of egress.proxy, and that "
		       "the proxy runs.";
	case ENODEV:
		return "The interface is not there: check egress.interface with 'ip link'.";
	case EADDRNOTAVAIL:
		return "This host has no such address, or none of the proxy's family: check "
		       "egress.address with 'ip addr'.";
	case ETIMEDOUT:
		return "No answer within timeouts.connect: check the address, and the firewalls on "
		       "the way.";
	default:
		return "Check the route to it with 'ip route get', and firewalls on this host.";
	}
}

static void tell_proxy(const struct config *c, struct doctor_finding *f)
{
	char address[IP_TEXT_MAX];
	const char *host = c->egress.proxy_host[0] ? c->egress.proxy_host
	                                           : ip_format(&c->egress.proxy_address, address);
	int rc = c->egress.proxy_host[0] ? try_name(c) : try_connect(c, &c->egress.proxy_address);

	f->state = rc == 0 ? DOCTOR_OK : DOCTOR_BROKEN;
	if (rc == 0)
		snprintf(f->text, sizeof(f->text),
		        "the proxy %.260s port %u takes connections; whether it lets "
		        "destinations through was not tried",
		        host, c->egress.proxy_port);
	else
		snprintf(f->text, sizeof(f->text),
		        "the proxy %.260s port %u cannot be connected to: %s", host,
		        c->egress.proxy_port,
		        rc == -ENOENT ? "its name cannot be resolved" : strerror(-rc));
	if (rc != 0)
		snprintf(f->remedy, sizeof(f->remedy), "%s", remedy(rc));
}

void doctor_egress(const char *path, struct doctor_finding *f)
{
	static struct config config;
	static struct diag_list diags;
	struct policy_file_facts facts = {0};
	struct policy_reader reader =
	        policy_reader_private_files(policy_default_preset_dir(), &facts);

	f->subject = "egress";
	config_init(&config);
	if (config_load(&reader, path, &config, &diags) != 0) {
		const struct diag *d = &diags.items[0];

		f->state = DOCTOR_BROKEN;
		if (diags.count && !d->line)
			snprintf(f->text, sizeof(f->text), "%.200s: %.250s", d->file, d->message);
		else if (diags.count)
			snprintf(f->text, sizeof(f->text), "%.200s:%u:%u: %.250s", d->file, d->line,
			        d->column, d->message);
		else
			snprintf(f->text, sizeof(f->text), "no memory");
		snprintf(f->remedy, sizeof(f->remedy), "See vethguard.yaml(5).");
	} else if (config.egress.proxy_port) {
		tell_proxy(&config, f);
	} else {
		snprintf(f->text, sizeof(f->text), "directly: the configuration names no proxy");
	}
	config_fini(&config);
}
