// Opens a URL in the user's browser. Never uses a shell, because the URL comes from a server.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { AuthError } from '../errors.ts'

const STARTED = 3_000

/**
 * Uses the commands in `BROWSER` (separated by colons, `%s` is the URL), otherwise the system browser. Rejects with
 * `interaction_required` without a browser, and with `invalid_options` for a URL that is not http or https.
 */
export async function openBrowser(url: URL, env: NodeJS.ProcessEnv = process.env): Promise<void> {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') {
    throw new AuthError(`a browser is not opened for a ${url.protocol} URL`, {
      code: 'invalid_options',
      fix: 'use an http or https URL',
    })
  }
  const commands = browserCommands(env, process.platform)
  for (const command of commands) if (await run(withUrl(command, url.href), env)) return
  const tried = commands.map(([program]) => program).join(', ')
  throw new AuthError(`cannot open a browser on this machine (${tried ? `tried ${tried}` : 'no display'})`, {
    code: 'interaction_required',
    fix: 'set BROWSER to a command that opens a browser, or show the URL to the user with your own `openBrowser`',
  })
}

type Command = readonly [program: string, ...args: string[]]

export function browserCommands(env: NodeJS.ProcessEnv, platform: NodeJS.Platform): Command[] {
  if (env['BROWSER']) {
    const listed = platform === 'win32' ? [env['BROWSER']] : env['BROWSER'].split(':')
    return listed
      .map(text => text.trim().split(/\s+/))
      .filter((words): words is [string, ...string[]] => words[0] !== '')
  }
  if (platform === 'darwin') return [['open']]
  // `start` needs a shell, which would interpret `&` in the URL.
  if (platform === 'win32') return [['rundll32', 'url.dll,FileProtocolHandler']]
  if (env['WSL_DISTRO_NAME']) return [['wslview'], ['xdg-open']]
  // Without a screen, xdg-open would start a text browser.
  return env['DISPLAY'] || env['WAYLAND_DISPLAY'] ? [['xdg-open']] : []
}

function withUrl([program, ...args]: Command, url: string): Command {
  if (args.some(arg => arg.includes('%s'))) return [program, ...args.map(arg => arg.replaceAll('%s', () => url))]
  return [program, ...args, url]
}

async function run([program, ...args]: Command, env: NodeJS.ProcessEnv): Promise<boolean> {
  const child = spawn(program, args, { stdio: 'ignore', detached: true, windowsHide: true, env })
  child.unref()
  const waiting = new AbortController()
  try {
    return await Promise.race([
      once(child, 'exit').then(([code]) => code === 0),
      sleep(STARTED, true, { signal: waiting.signal }),
    ])
  } catch {
    return false
  } finally {
    waiting.abort()
  }
}
