/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the control API; see vethguard/adapter/control_client.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "vethguard/adapter/control_client.h"
#include "vethguard/base/buf.h"
#include "vethguard/wire/control_http.h"

/* Returns a connected socket or -errno. */
static int dial(const char *path)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	struct timeval patience = {.tv_sec = CONTROL_TIMEOUT_S};
	int fd;

	if (strlen(path) >= sizeof(name.sun_path))
		return -ENAMETOOLONG;
	memcpy(name.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	int rc = -errno;
	close(fd);
	return rc;
}

static int send_all(int fd, struct slice bytes)
{
	while (bytes.n > 0) {
		ssize_t n = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes = slice_of(bytes.p + n, bytes.n - (size_t)n);
	}
	return 0;
}

static int ask(int fd, const char *method, const char *path, const json_t *body)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	struct buf out;
	int rc;

	if (body && !text)
		return -ENOMEM;
	buf_init(&out, CONTROL_HEAD_MAX + CONTROL_BODY_MAX);
	rc = buf_printf(&out,
	        "%s /v1%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s"
	        "Content-Length: %zu\r\n\r\n",
	        method, path, text ? "Content-Type: " CONTROL_JSON "\r\n" : "",
	        text ? strlen(text) : 0);
	if (rc == 0 && text)
		rc = buf_append_slice(&out, slice_from_string(text));
	if (rc == 0)
		rc = send_all(fd, buf_slice(&out));
	buf_fini(&out);
	free(text);
	/* the daemon may have answered, with the reason, without reading everything */
	return rc == -EPIPE || rc == -ECONNRESET ? 0 : rc;
}

/* Reads the complete message: the head and as many bytes as it says. */
static int hear(int fd, struct buf *in, struct control_head *head)
{
	for (;;) {
		int status = control_head_response(buf_slice(in), head);
		uint8_t *room;
		ssize_t n;

		if (status != CONTROL_HEAD_WHOLE && status != CONTROL_HEAD_MORE)
			return -EBADMSG;
		if (status == CONTROL_HEAD_WHOLE && head->length > CONTROL_ANSWER_MAX)
			return -EMSGSIZE;
		if (status == CONTROL_HEAD_WHOLE && in->len - head->size >= head->length)
			return 0;
		room = buf_reserve(in, 65536);
		if (!room)
			return -ENOMEM;
		n = recv(fd, room, 65536, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		buf_commit(in, (size_t)n);
	}
}

int control_client_call(const char *socket_path, const char *method, const char *path,
        const json_t *body, struct control_answer *answer)
{
	struct control_head head;
	struct buf in;
	int fd = dial(socket_path), rc;

	*answer = (struct control_answer){0};
	if (fd < 0)
		return fd;
	answer->asked = true;
	buf_init(&in, CONTROL_ANSWER_MAX + CONTROL_HEAD_MAX + 65536);
	rc = ask(fd, method, path, body);
	if (rc == 0)
		rc = hear(fd, &in, &head);
	close(fd);
	if (rc == 0) {
		answer->status = head.status;
		answer->json = json_loadb((char *)buf_bytes(&in) + head.size, (size_t)head.length,
		        JSON_REJECT_DUPLICATES, NULL);
		rc = answer->json ? 0 : -EBADMSG;
	}
	buf_fini(&in);
	return rc;
}

void control_answer_free(struct control_answer *answer)
{
	json_decref(answer->json);
	answer->json = NULL;
}

bool control_answer_is_good(const struct control_answer *answer)
{
	return answer->status == 200 || answer->status == 201;
}

static void describe_unreachable(int error, const char *path, char out[CONTROL_CLIENT_TEXT_MAX])
{
	if (error == ENOENT || error == ECONNREFUSED)
		snprintf(out, CONTROL_CLIENT_TEXT_MAX,
		        "vethguardd does not run: nothing listens on %s; start it with 'systemctl "
		        "start vethguardd'",
		        path);
	else if (error == EACCES || error == EPERM)
		snprintf(out, CONTROL_CLIENT_TEXT_MAX,
		        "this user may not use %s: root may, and members of the group vethguard",
		        path);
	else
		snprintf(out, CONTROL_CLIENT_TEXT_MAX, "vethguardd on %s: %s", path,
		        error == EAGAIN ? "it does not answer" : strerror(error));
}

const char *control_answer_fault(const struct control_answer *answer, int rc,
        const char *socket_path, char out[CONTROL_CLIENT_TEXT_MAX])
{
	const char *detail = control_text(answer->json, "detail");
	const char *line =
	        json_string_value(json_array_get(json_object_get(answer->json, "diagnostics"), 0));
	char text[CONTROL_CLIENT_TEXT_MAX];

	if (rc)
		describe_unreachable(-rc, socket_path, text);
	else
		snprintf(text, sizeof(text), "%s%s%s",
		        *detail ? detail : control_status_name(answer->status), line ? ": " : "",
		        line ? line : "");
	slice_escape_controls(slice_from_string(text), out, CONTROL_CLIENT_TEXT_MAX);
	return out;
}

const char *control_text(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}
