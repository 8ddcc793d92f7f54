/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the socket is configured here and read by a program that has no right to
 * configure one. The kernel gathers records into one datagram until the limits below are reached.
 */
#include "vethguard/fence/fence.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONFIG_BYTES 256 /* a header and a few numbers */
#define REPLY_BYTES 1024 /* an acknowledgment with the message it acknowledges */
#define RECEIVE_BYTES (8 * 1024 * 1024)
#define GATHER_BYTES (FENCE_NFLOG_DATAGRAM_BYTES / 2) /* of one datagram, with a large margin */
/* Each packet is reported at once, so that one dropped just before the sandbox ends is in the
 * socket when the recorder reads it for the last time. The recorder does not wake more often for
 * that, because it lets records gather itself. */
#define GATHER_PACKETS 1
#define GATHER_CENTISECONDS 10

static struct nlmsghdr *config_begin(char *buffer, uint16_t group, uint32_t sequence)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(buffer);
	struct nfgenmsg *nfg;

	header->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
	header->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	header->nlmsg_seq = sequence;
	nfg = mnl_nlmsg_put_extra_header(header, sizeof(*nfg));
	nfg->nfgen_family = AF_UNSPEC;
	nfg->version = NFNETLINK_V0;
	nfg->res_id = htons(group);
	return header;
}

static int config_send(int fd, const struct nlmsghdr *header)
{
	_Alignas(struct nlmsghdr) char reply[REPLY_BYTES];
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	ssize_t n = sendto(
	        fd, header, header->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel));

	if (n >= 0)
		n = recv(fd, reply, sizeof(reply), 0);
	if (n < 0)
		return -errno;
	return mnl_cb_run(reply, (size_t)n, header->nlmsg_seq, 0, NULL, NULL) < 0 ? -errno : 0;
}

/* Sends all settings in one message, because each message takes two calls. */
int fence_nflog_bind(int fd, uint16_t group)
{
	_Alignas(struct nlmsghdr) char buffer[CONFIG_BYTES] = {0}; /* also between attributes */
	struct nlmsghdr *header = config_begin(buffer, group, 1);
	struct nfulnl_msg_config_cmd command = {.command = NFULNL_CFG_CMD_BIND};
	struct nfulnl_msg_config_mode mode = {
	        .copy_range = htonl(FENCE_SNAP_BYTES), .copy_mode = NFULNL_COPY_PACKET};

	mnl_attr_put(header, NFULA_CFG_CMD, sizeof(command), &command);
	mnl_attr_put(header, NFULA_CFG_MODE, sizeof(mode), &mode);
	mnl_attr_put_u32(header, NFULA_CFG_NLBUFSIZ, htonl(GATHER_BYTES));
	mnl_attr_put_u32(header, NFULA_CFG_TIMEOUT, htonl(GATHER_CENTISECONDS));
	mnl_attr_put_u32(header, NFULA_CFG_QTHRESH, htonl(GATHER_PACKETS));
	return config_send(fd, header);
}

static void size_receive_buffer(int fd)
{
	int bytes = RECEIVE_BYTES, one = 1;

	/* "force" needs privilege over the machine; without it the limit of net.core.rmem_max has
	 * to do */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &one, sizeof(one));
}

int fence_nflog_socket(void)
{
	struct sockaddr_nl any = {.nl_family = AF_NETLINK};
	/* Netlink answers within sendto(2), so recv(2) finds the answer without blocking. */
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_NETFILTER);
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) < 0)
		rc = -errno;
	if (rc == 0) {
		size_receive_buffer(fd);
		return fd;
	}
	close(fd);
	return rc;
}

int fence_nflog_open(uint16_t group)
{
	int fd = fence_nflog_socket(), rc;

	if (fd < 0)
		return fd;
	rc = fence_nflog_bind(fd, group);
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}
