// Asks what standard input lists, with the SDK of each API, and prints what the SDK made of every reply.
//
// in:  {"url": base, "cases": [{"id", "api", "stream", "headers", "request"}]}
// out: {id: {"text", "reasoning", "calls": [[id, name, arguments]], "finish"} or {"error"}}

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const TOGETHER = 8;

async function seeOpenAI(client, { stream, headers, request }) {
  const completion = stream
    ? await client.chat.completions.stream(request, { headers }).finalChatCompletion()
    : await client.chat.completions.create(request, { headers });
  const { message, finish_reason: finish } = completion.choices[0];
  const calls = (message.tool_calls ?? []).map((call) => [call.id, call.function.name, decode(call.function.arguments)]);
  return { text: message.content ?? "", reasoning: message.reasoning_content ?? "", calls, finish };
}

async function seeAnthropic(client, { stream, headers, request }) {
  const message = stream
    ? await client.messages.stream(request, { headers }).finalMessage()
    : await client.messages.create(request, { headers });
  const join = (type, key) => message.content.filter((block) => block.type === type).map((block) => block[key]).join("");
  const calls = message.content
    .filter((block) => block.type === "tool_use")
    .map((block) => [block.id, block.name, block.input]);
  return { text: join("text", "text"), reasoning: join("thinking", "thinking"), calls, finish: message.stop_reason };
}

function decode(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function read(stream) {
  let text = "";
  for await (const piece of stream.setEncoding("utf8")) text += piece;
  return JSON.parse(text);
}

const { url, cases } = await read(process.stdin);
const settings = { apiKey: "k", maxRetries: 0, timeout: 15_000 };
const openai = new OpenAI({ ...settings, baseURL: `${url}/v1` });
const anthropic = new Anthropic({ ...settings, baseURL: url });
const seen = {};
const waiting = [...cases];

async function work() {
  for (let one = waiting.shift(); one !== undefined; one = waiting.shift()) {
    try {
      seen[one.id] = one.api === "openai.chat" ? await seeOpenAI(openai, one) : await seeAnthropic(anthropic, one);
    } catch (error) {
      seen[one.id] = { error: `${error.constructor.name}: ${error.message}` };
    }
  }
}

await Promise.all(Array.from({ length: TOGETHER }, work));
console.log(JSON.stringify(seen));
