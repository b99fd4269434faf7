// A server between a store and Django that loses, refuses and delays what passes through it.

import http from "node:http";
import type { AddressInfo } from "node:net";

export interface Seen {
  method: string;
  path: string;
  query: URLSearchParams;
  body: any;
}

type Fault = (
  seen: Seen,
  forward: () => Promise<{ status: number; headers: Record<string, string>; text: string }>,
  response: http.ServerResponse,
) => Promise<void>;

export const passed: Fault = async (_seen, forward, response) => {
  const { status, headers, text } = await forward();
  response.writeHead(status, headers).end(text);
};

export const answerLost: Fault = async (_seen, forward, response) => {
  await forward();
  response.destroy();
};

export const neverSent: Fault = async (_seen, _forward, response) => {
  response.destroy();
};

// Django has done it, and the proxy before it says otherwise.
export const doneAndRefused =
  (status: number): Fault =>
  async (_seen, forward, response) => {
    await forward();
    response.writeHead(status).end("<html>try again</html>");
  };

export const answered =
  (status: number, text: string, headers: Record<string, string> = {}): Fault =>
  async (_seen, _forward, response) => {
    response.writeHead(status, headers).end(text);
  };

export const cutShort: Fault = async (_seen, forward, response) => {
  const { status, text } = await forward();
  response.writeHead(status, { "Content-Length": String(text.length + 100) });
  response.write(text.slice(0, 5));
  setTimeout(() => response.destroy(), 20);
};

// On its way until release(), when the client has long stopped waiting for it.
export function underway() {
  let release = () => {};
  const released = new Promise<void>((done) => (release = done));
  let arrive: (status: number) => void;
  const arrived = new Promise<number>((done) => (arrive = done));
  const fault: Fault = async (_seen, forward) => {
    await released;
    arrive((await forward()).status);
  };
  return { fault, release, arrived };
}

export const slowly =
  (ms: number): Fault =>
  async (seen, forward, response) => {
    await new Promise((done) => setTimeout(done, ms));
    await passed(seen, forward, response);
  };

// Each request meets the next of the faults, and passes when there is none left.
export async function proxyTo(target: string) {
  const seen: Seen[] = [];
  const faults: Fault[] = [];
  const server = http.createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const sent = Buffer.concat(parts).toString();
    const url = new URL(request.url!, target);
    const asked = {
      method: request.method!,
      path: url.pathname,
      query: url.searchParams,
      body: sent === "" ? undefined : JSON.parse(sent),
    };
    seen.push(asked);
    const forward = async () => {
      const answer = await fetch(url, {
        method: asked.method,
        headers: {
          Authorization: request.headers.authorization ?? "",
          "Content-Type": "application/json",
        },
        ...(sent !== "" && { body: sent }),
      });
      const type = answer.headers.get("Content-Type");
      const headers: Record<string, string> = type ? { "Content-Type": type } : {};
      return { status: answer.status, headers, text: await answer.text() };
    };
    await (faults.shift() ?? passed)(asked, forward, response).catch(() => response.destroy());
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${new URL(target).pathname}`,
    seen,
    faults,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
