// MemoryVault's plugin for OpenCode. `memory init --host opencode` writes this file, `memory uninstall` removes it.
// It runs MemoryVault's hook at what happens here, JSON on its standard input. Whatever goes wrong is left out in
// silence: OpenCode loses the prompt, or ends the turn, where a plugin throws.
import { execFileSync, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { isatty } from "node:tty"

const LAUNCHER = "@LAUNCHER@"
const ACTIONS = false // `memory guard --on`: each call of these tools then starts a process.
const TOOLS = new Set(["bash", "edit", "write", "apply_patch"])
const MARK = "memoryvault"
// In the terminal client, also for a folder (`.`, or a path) or a session; not with `opencode run …`, `serve` and the
// like, nor with `--prompt …` or `… | opencode`, whose first prompt is what the option or the pipe holds.
const NAMED = /-s|--session|-m|--model|--agent|--port|--hostname|--log-level/.source
const BY_HAND = RegExp(`^( (\\.\\.?|(?!-)\\S*/\\S*|-c|--continue|--fork|--auto|--print-logs|(${NAMED})[ =]\\S+))*$`)
const IS_TYPED = isatty(0) && BY_HAND.test(startedWith())
const OF_ITS_OWN = /^You are a (title generator|context summarization agent)/ // Requests in which nobody works.
const { OPENCODE, ...env } = process.env // With it the hook counts as run by the agent in its shell.
const PATIENCE_MS = 5000 // The hook ends itself long before.

class Refusal extends Error {}

// In the worker thread in which the terminal client loads plugins, `process.argv` holds none of it.
function startedWith() {
  try {
    return readFileSync("/proc/self/cmdline", "utf8").split("\0").slice(1, -1).map((word) => ` ${word}`).join("")
  } catch {}
  try {
    const options = ["-ww", "-o", "args=", "-p", `${process.pid}`]
    return execFileSync("ps", options, { encoding: "utf8" }).trim().replace(/^\S+/, "")
  } catch {
    return "unknown"
  }
}

function runHook(event, payload) {
  return new Promise((resolve) => {
    try {
      const child = spawn(LAUNCHER, [event, "--host", "opencode"], { env, stdio: ["pipe", "pipe", "ignore"] })
      const timer = setTimeout(() => (child.kill("SIGKILL"), resolve("")), PATIENCE_MS)
      const end = (text) => (clearTimeout(timer), resolve(text))
      let printed = ""
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (text) => (printed += text))
      child.stdin.on("error", () => {})
      child.on("error", () => end(""))
      child.on("close", (code) => end(code === 0 ? printed.trim() : ""))
      child.stdin.end(JSON.stringify(payload))
    } catch {
      resolve("")
    }
  })
}

function parse(printed) {
  try {
    return JSON.parse(printed).hookSpecificOutput ?? {}
  } catch {
    return {}
  }
}

const safe = (act) => async (input, output) => {
  try {
    await act(input, output)
  } catch (error) {
    if (error instanceof Refusal) throw error
  }
}

export default async ({ client, directory }) => {
  const loaded = Date.now()
  const sessions = new Map()
  const asked = new Set()
  // What the hook said before a tool call, until it can be told. Some models give all their calls the same id.
  const notes = new Map()
  const cures = new Map() // What is told behind an error, by the part's id.

  const sessionOf = (id) => {
    if (!sessions.has(id)) sessions.set(id, describe(id))
    return sessions.get(id)
  }
  const describe = async (id) => {
    let info = {}
    try {
      info = (await client.session.get({ path: { id } })).data ?? {}
    } catch {}
    return { id, parent: info.parentID, source: info.time?.created < loaded ? "resume" : "startup", opening: undefined }
  }
  // A sub-agent's calls are its parent's; `agent_id` tells the hook to leave all else of it alone.
  const hook = (event, session, fields = {}) => {
    const agent = session.parent ? { agent_id: session.id } : {}
    return runHook(event, { session_id: session.parent ?? session.id, cwd: directory, ...agent, ...fields })
  }
  const take = (call) => {
    const note = notes.get(call)
    notes.delete(call)
    return note
  }
  const open = (session) => (session.opening ??= hook("SessionStart", session, { source: session.source }))
  const failed = async (session, tool, input, error) =>
    parse(await hook("PostToolUseFailure", session, { tool_name: tool, tool_input: input, error })).additionalContext ?? ""

  return {
    // A command's text is not typed; nothing in OpenCode's own record tells the two apart.
    "command.execute.before": safe(async ({ command, arguments: words }, { parts }) => {
      const mark = { command: IS_TYPED ? command : "", arguments: words }
      for (const part of parts) {
        if (part.type === "text") part.metadata = { ...part.metadata, [MARK]: mark }
      }
    }),
    "chat.message": safe(async ({ sessionID, agent, model }, { message, parts }) => {
      const session = await sessionOf(sessionID)
      if (session.parent) return
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic && !part.ignored)
      // The terminal client always names both; a prompt of another plugin seldom does.
      if (IS_TYPED && agent && model) for (const part of typed) part.metadata = { [MARK]: "typed", ...part.metadata }
      if (!typed.length) return
      await open(session)
      const prompt = typed.map((part) => part.text).join("\n")
      const text = await hook("UserPromptSubmit", session, { prompt, prompt_id: message.id })
      // Parts are sorted by their ids: this one comes behind the prompt.
      const last = parts.map((part) => part.id).sort().at(-1)
      if (text) {
        const id = last.slice(0, -2) + "zz"
        parts.push({ id, sessionID, messageID: message.id, type: "text", synthetic: true, text })
      }
    }),
    "experimental.chat.system.transform": safe(async ({ sessionID }, { system }) => {
      if (!sessionID || OF_ITS_OWN.test(system[0])) return
      const session = await sessionOf(sessionID)
      const text = session.parent ? "" : await open(session)
      if (text) system.push(text)
    }),
    "tool.execute.before": safe(async ({ tool, sessionID, callID }, { args }) => {
      if (!ACTIONS || !TOOLS.has(tool)) return
      const session = await sessionOf(sessionID)
      const answer = parse(await hook("PreToolUse", session, { tool_name: tool, tool_input: args }))
      const reason = answer.permissionDecisionReason
      if (answer.permissionDecision === "deny") throw new Refusal(reason)
      // A plugin cannot have the user asked: it is refused once, so that the agent asks.
      if (answer.permissionDecision === "ask" && !asked.has(sessionID + reason)) {
        asked.add(sessionID + reason)
        throw new Refusal(`${reason} Ask the user first; if they agree, run it again.`)
      }
      if (answer.additionalContext) notes.set(sessionID + callID, answer.additionalContext)
    }),
    "tool.execute.after": safe(async ({ tool, sessionID, callID, args }, output) => {
      if (IS_TYPED && tool === "question") output.metadata = { ...output.metadata, [MARK]: "typed" }
      const told = [take(sessionID + callID)]
      if (ACTIONS && tool === "bash" && output.metadata?.exit) {
        told.push(await failed(await sessionOf(sessionID), tool, args, output.output))
      }
      for (const text of told) if (text) output.output += `\n\n${text}`
    }),
    "experimental.chat.messages.transform": safe(async (_, { messages }) => {
      for (const part of messages.flatMap((message) => message.parts)) {
        if (part.type !== "tool" || part.state.status !== "error") continue
        const text = await cures.get(part.id)
        if (text && !part.state.error.endsWith(text)) part.state.error += `\n\n${text}`
      }
    }),
    "experimental.session.compacting": safe(async ({ sessionID }) => {
      await hook("PreCompact", await sessionOf(sessionID))
    }),
    event: safe(async ({ event: { type, properties } }) => {
      const part = properties.part
      if (type === "session.idle") {
        const session = await sessionOf(properties.sessionID)
        session.stopping = hook("Stop", session)
        await session.stopping
      } else if (type === "session.compacted") {
        Object.assign(await sessionOf(properties.sessionID), { opening: undefined, source: "compact" })
      } else if (ACTIONS && type === "message.part.updated" && part.type === "tool" && part.state.status === "error") {
        if (cures.has(part.id)) return
        // Set at once: the next request waits for what is not there yet.
        const before = take(part.sessionID + part.callID) ?? ""
        const { input, error } = part.state
        cures.set(part.id, error.startsWith("The user") ? before : sessionOf(part.sessionID)
          .then((session) => failed(session, part.tool, input, error))
          .then((text) => [before, text].filter(Boolean).join("\n"), () => before))
      }
    }),
    dispose: safe(async () => {
      const known = await Promise.all(sessions.values())
      const end = async (session) => {
        await session.stopping // OpenCode itself does not wait for what an event starts.
        await hook("SessionEnd", session)
      }
      await Promise.all(known.filter((session) => !session.parent).map(end))
    }),
  }
}
