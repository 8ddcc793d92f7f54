/* SPDX-License-Identifier: Apache-2.0 */
/* vethguard-connect: see connect.h. Everything else is set up before the command starts, so that
 * the command finds the proxy. */
#include <errno.h>
#include <event2/listener.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "connect.h"
#include "udp.h"
#include "vethguard/base/log.h"

#define STATUS_FAILED 125
#define BACKLOG 512

static void on_accepted(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *from,
        int n, void *context)
{
	(void)listener, (void)from, (void)n;
	link_open(context, fd);
}

static bool listen_at(struct connect *c, size_t i, const char *address)
{
	struct sockaddr_storage at;
	struct ip ip;
	socklen_t n;

	ip_parse(slice_from_string(address), &ip);
	n = ip_to_sockaddr(&ip, c->arguments.port, &at);
	c->listeners[i] = evconnlistener_new_bind(c->base, on_accepted, c,
	        LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC | LEV_OPT_REUSEABLE, BACKLOG,
	        (struct sockaddr *)&at, (int)n);
	return c->listeners[i];
}

static void on_end(evutil_socket_t signal, short what, void *context)
{
	struct connect *c = context;

	(void)what;
	if (c->command_pid)
		kill(c->command_pid, signal);
	else
		event_base_loopbreak(c->base);
}

static void on_child(evutil_socket_t signal, short what, void *context)
{
	struct connect *c = context;
	int status;

	(void)signal, (void)what;
	if (!c->command_pid || waitpid(c->command_pid, &status, WNOHANG) != c->command_pid)
		return;
	c->command_pid = 0;
	c->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	event_base_loopbreak(c->base);
}

static bool listen_to_signals(struct connect *c)
{
	const struct {
		int signal;
		event_callback_fn on_signal;
	} signals[] = {{SIGTERM, on_end}, {SIGINT, on_end}, {SIGHUP, on_end}, {SIGCHLD, on_child}};

	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		c->signals[i] = evsignal_new(c->base, signals[i].signal, signals[i].on_signal, c);
		if (!c->signals[i] || evsignal_add(c->signals[i], NULL) < 0)
			return false;
	}
	return true;
}

/* Keeps the token in this process's memory from other processes of the same user and from core
 * dumps. */
static void hide_memory(void)
{
	const struct rlimit none = {0};

	if (prctl(PR_SET_DUMPABLE, 0) < 0 || setrlimit(RLIMIT_CORE, &none) < 0)
		die(STATUS_FAILED, "the memory of this process cannot be hidden from others: %s",
		        strerror(errno));
}

static bool serve(struct connect *c)
{
	if (!listen_at(c, 0, "127.0.0.1")) {
		log_error("127.0.0.1:%u cannot be served: %s; choose another with --port",
		        c->arguments.port, strerror(errno));
		return false;
	}
	if (!listen_at(c, 1, "::1"))
		log_debug("::1 is not served: %s", strerror(errno));
	if (c->arguments.redirect) {
		if (!names_serve(c))
			return false;
		c->udp = udp_serve(c);
		if (!redirect_set(c))
			return false;
	}
	if (c->arguments.command && (c->command_pid = command_start(c)) < 0)
		return false;
	return true;
}

static bool prepare(struct connect *c)
{
	const struct arguments *a = &c->arguments;

	return listen_to_signals(c) && gateway_open(c) && (!a->ca || trust_write_bundle(a)) &&
	       (!a->trust || trust_install(a)) && serve(c);
}

int main(int argc, char **argv)
{
	static struct connect c = {.dns_fd = {-1, -1}, .status = STATUS_FAILED};
	int status;

	log_open("vethguard-connect", LOG_LEVEL_INFO);
	if (argc < 1 || !arguments_read(&c.arguments, argv + 1, &status))
		return argc < 1 ? STATUS_FAILED : status;
	if (c.arguments.debug)
		log_open("vethguard-connect", LOG_LEVEL_DEBUG);
	hide_memory();
	list_init(&c.links);
	c.base = event_base_new();
	if (!c.base)
		die(STATUS_FAILED, "no memory");
	if (prepare(&c)) {
		if (!c.command_pid)
			log_info("serves programs on 127.0.0.1:%u", c.arguments.port);
		c.status = 0;
		event_base_dispatch(c.base);
	}
	if (c.arguments.redirect)
		redirect_remove();
	links_close(&c);
	udp_end(c.udp);
	names_end(&c);
	for (size_t i = 0; i < LISTENERS; i++)
		if (c.listeners[i])
			evconnlistener_free(c.listeners[i]);
	for (size_t i = 0; i < sizeof(c.signals) / sizeof(c.signals[0]); i++)
		if (c.signals[i])
			event_free(c.signals[i]);
	gateway_close(&c);
	event_base_free(c.base);
	return c.status;
}
