/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The gateway. Its name is resolved once, before connections are redirected: this program needs no
 * other address later.
 */
#include <errno.h>
#include <event2/bufferevent_ssl.h>
#include <event2/dns.h>
#include <event2/util.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "connect.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/tls/bundle.h"

#define TOKEN_VARIABLE "VETHGUARD_TOKEN"

static struct secret variable; /* the variable's value, removed from the environment */

static void on_addresses(int result, struct evutil_addrinfo *found, void *context)
{
	struct connect *c = context;

	for (struct evutil_addrinfo *at = found; at && c->address_count < ADDRESSES_MAX;
	        at = at->ai_next) {
		const struct ip address = ip_from_sockaddr(at->ai_addr, NULL);

		if (address.family)
			c->addresses[c->address_count++] = address;
	}
	if (result)
		log_error("%s cannot be resolved: %s", c->arguments.gateway,
		        evutil_gai_strerror(result));
	if (found)
		evutil_freeaddrinfo(found);
	event_base_loopbreak(c->base);
}

static bool resolve(struct connect *c)
{
	struct evutil_addrinfo hints = {
	        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_protocol = IPPROTO_TCP};

	if (c->arguments.address.family) {
		c->addresses[0] = c->arguments.address;
		c->address_count = 1;
		return true;
	}
	c->dns = evdns_base_new(c->base, EVDNS_BASE_INITIALIZE_NAMESERVERS);
	if (!c->dns) {
		log_error("%s cannot be resolved: /etc/resolv.conf names no server; give --address",
		        c->arguments.gateway);
		return false;
	}
	if (evdns_getaddrinfo(c->dns, c->arguments.gateway, NULL, &hints, on_addresses, c))
		event_base_dispatch(c->base);
	evdns_base_free(c->dns, 0);
	c->dns = NULL;
	return c->address_count > 0;
}

static bool refused(const char *what, const char *file)
{
	char why[160];

	ERR_error_string_n(ERR_get_error(), why, sizeof(why));
	log_error("%s %s: %s", what, file, why);
	return false;
}

static bool open_tls(struct connect *c)
{
	const char *ca = c->arguments.gateway_ca ? c->arguments.gateway_ca : bundle_system_path();

	if (!ca) {
		log_error("this system has no file of CAs; give the gateway's with --gateway-ca");
		return false;
	}
	c->tls = SSL_CTX_new(TLS_client_method());
	if (!c->tls || !SSL_CTX_set_min_proto_version(c->tls, TLS1_2_VERSION))
		return refused("TLS", "cannot be set up");
	SSL_CTX_set_verify(c->tls, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_mode(c->tls, SSL_MODE_RELEASE_BUFFERS);
	if (!SSL_CTX_load_verify_file(c->tls, ca))
		return refused("CAs cannot be read:", ca);
	return true;
}

/* Takes the token out of the environment: the command's processes do not need it. */
static bool take_variable(void)
{
	char *value = getenv(TOKEN_VARIABLE);
	const size_t n = value ? strlen(value) : 0;

	if (!n) {
		log_error("there is no token: give --token-file or the variable " TOKEN_VARIABLE);
		return false;
	}
	if (n > SECRET_MAX || secret_copy(&variable, value, n) != 0) {
		log_error("the token in " TOKEN_VARIABLE " is longer than %d bytes, or there is no "
		          "memory for it",
		        SECRET_MAX);
		return false;
	}
	secret_wipe(value, n);
	unsetenv(TOKEN_VARIABLE);
	return true;
}

static bool is_of_token(char byte)
{
	return byte > ' ' && byte < 0x7f;
}

size_t gateway_token(const struct connect *c, char *out, size_t max)
{
	const char *from = c->arguments.token_file;
	size_t n = 0;
	ssize_t got = 1;
	int fd;

	if (!from) {
		n = variable.n <= max ? variable.n : 0;
		memcpy(out, variable.p, n);
	} else {
		fd = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		while (fd >= 0 && n < max && (got = read(fd, out + n, max - n)) > 0)
			n += (size_t)got;
		if (fd < 0 || got < 0)
			log_error("the token cannot be read: %s: %s", from, strerror(errno));
		if (fd >= 0)
			close(fd);
		if (fd < 0 || got < 0)
			return 0;
	}
	while (n && (out[n - 1] == '\n' || out[n - 1] == '\r'))
		n--;
	for (size_t i = 0; i < n; i++)
		if (!is_of_token(out[i]))
			n = 0;
	if (!n || n == max) {
		log_error("%s has no token: one line without spaces is expected",
		        from ? from : TOKEN_VARIABLE);
		return 0;
	}
	return n;
}

/* A connection's TLS, which verifies the gateway's name. Returns NULL if there is no memory. */
static SSL *new_tls(struct connect *c)
{
	const char *name = c->arguments.gateway;
	SSL *ssl = SSL_new(c->tls);
	struct ip address;
	bool good;

	if (!ssl)
		return NULL;
	if (ip_parse(slice_from_string(name), &address))
		good = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name);
	else
		good = SSL_set1_host(ssl, name) && SSL_set_tlsext_host_name(ssl, name);
	if (!good) {
		SSL_free(ssl);
		return NULL;
	}
	return ssl;
}

struct bufferevent *gateway_connection(struct connect *c)
{
	SSL *ssl = new_tls(c);
	struct bufferevent *far = NULL;

	if (ssl)
		far = bufferevent_openssl_socket_new(
		        c->base, -1, ssl, BUFFEREVENT_SSL_CONNECTING, BEV_OPT_CLOSE_ON_FREE);
	if (!far)
		SSL_free(ssl);
	return far;
}

void gateway_connected(struct bufferevent *far)
{
	const int fd = bufferevent_getfd(far), on = 1;

	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

bool gateway_connect(struct connect *c, struct bufferevent *far)
{
	struct sockaddr_storage to;
	const socklen_t n =
	        ip_to_sockaddr(&c->addresses[c->address_at], c->arguments.gateway_port, &to);

	return bufferevent_socket_connect(far, (struct sockaddr *)&to, (int)n) == 0;
}

void gateway_try_next(struct connect *c)
{
	c->address_at = (c->address_at + 1) % c->address_count;
}

const char *gateway_why_not(struct bufferevent *far, short what)
{
	const long verified = SSL_get_verify_result(bufferevent_openssl_get_ssl(far));
	const unsigned long code = bufferevent_get_openssl_error(far);
	const char *text = code ? ERR_reason_error_string(code) : NULL;

	if (verified != X509_V_OK)
		return X509_verify_cert_error_string(verified);
	if (what & BEV_EVENT_TIMEOUT)
		return "no answer in time";
	return text                   ? text
	       : what & BEV_EVENT_EOF ? "the connection was closed"
	                              : strerror(EVUTIL_SOCKET_ERROR());
}

bool gateway_open(struct connect *c)
{
	return (c->arguments.token_file || take_variable()) && open_tls(c) && resolve(c);
}

void gateway_close(struct connect *c)
{
	SSL_CTX_free(c->tls);
	secret_free(&variable);
}
