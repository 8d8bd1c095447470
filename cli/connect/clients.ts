// The table of clients for `mcp-host connect`: configuration file, format and capabilities.
import { join, posix, win32 } from 'node:path'

export type Reached = { readonly url: string } | { readonly command: string; readonly args: readonly string[] }

export interface Machine {
  readonly platform: NodeJS.Platform
  readonly home: string
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
}

export interface ClientRow {
  readonly title: string
  /** True: connects to URLs and logs in itself. False: requires `mcp-host proxy`. */
  readonly remote: boolean
  readonly config?: {
    file(machine: Machine): string
    readonly key: 'mcpServers' | 'servers'
    readonly inProject?: true
    entry(reached: Reached): object
  }
  command?(name: string, reached: Reached): readonly string[]
  readonly next: string
}

const isUrl = (reached: Reached): reached is { readonly url: string } => 'url' in reached

const withType = (reached: Reached): object => ({ type: isUrl(reached) ? 'http' : 'stdio', ...reached })

const desktopFolder = ({ platform, home, env }: Machine): string => {
  if (platform === 'darwin') return posix.join(home, 'Library/Application Support/Claude')
  if (platform === 'win32') return win32.join(env['APPDATA'] ?? win32.join(home, 'AppData', 'Roaming'), 'Claude')
  return join(env['XDG_CONFIG_HOME'] || join(home, '.config'), 'Claude')
}

export const CLIENTS = {
  'claude-code': {
    title: 'Claude Code',
    remote: true,
    config: { file: ({ cwd }) => join(cwd, '.mcp.json'), key: 'mcpServers', inProject: true, entry: withType },
    command: (name, reached) =>
      isUrl(reached)
        ? ['claude', 'mcp', 'add', '--transport', 'http', name, reached.url]
        : ['claude', 'mcp', 'add', name, '--', reached.command, ...reached.args],
    next: 'In Claude Code, /mcp shows it, and logs in where that is needed.',
  },
  'claude-desktop': {
    title: 'Claude Desktop',
    remote: false,
    config: {
      file: machine => join(desktopFolder(machine), 'claude_desktop_config.json'),
      key: 'mcpServers',
      entry: reached => reached,
    },
    next: 'Quit Claude Desktop and start it again.',
  },
  cursor: {
    title: 'Cursor',
    remote: true,
    config: { file: ({ home }) => join(home, '.cursor', 'mcp.json'), key: 'mcpServers', entry: reached => reached },
    next: 'In Cursor, Settings > MCP shows it, and logs in where that is needed.',
  },
  vscode: {
    title: 'VS Code',
    remote: true,
    config: { file: ({ cwd }) => join(cwd, '.vscode', 'mcp.json'), key: 'servers', inProject: true, entry: withType },
    next: 'In VS Code, "MCP: List Servers" starts it, and logs in where that is needed.',
  },
  inspector: {
    title: 'MCP Inspector',
    remote: true,
    command: (_name, reached) => [
      'npx',
      '-y',
      '@modelcontextprotocol/inspector',
      ...(isUrl(reached)
        ? ['--transport', 'http', '--server-url', reached.url]
        : ['--', reached.command, ...reached.args]),
    ],
    next: 'It opens a page in the browser; "Connect" there.',
  },
} as const satisfies Readonly<Record<string, ClientRow>>

export type ClientName = keyof typeof CLIENTS
