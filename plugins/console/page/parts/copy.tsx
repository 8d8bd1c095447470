// Copying text: a button, and a block of code with a button.
import { signal } from '@preact/signals'
import type { Command } from '../../api.ts'
import { visibleText } from '../data/text.ts'
import { Text } from './text.tsx'

const SHOWN = 2_000
/** The message of the live region, such as "Copied". */
export const toast = signal('')
let timer = 0

export function announce(message: string): void {
  toast.value = message
  clearTimeout(timer)
  timer = window.setTimeout(() => {
    toast.value = ''
  }, SHOWN)
}

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    announce('Copied.')
  } catch {
    announce('The browser did not allow copying.')
  }
}

interface CopyProps {
  readonly text: string
  /** The object of the label: "the URL". */
  readonly what: string
  readonly label?: string
}

export const Copy = ({ text, what, label = 'Copy' }: CopyProps) => (
  <button type="button" onClick={() => copy(text)} title={visibleText(text)}>
    {label}
    <span class="hidden"> {what}</span>
  </button>
)

export const CodeBlock = ({ text, what }: CopyProps) => (
  <div class="block">
    <pre tabIndex={text.length > 500 || text.split('\n').length > 12 ? 0 : undefined}>
      <Text value={text} most={40_000} lines />
    </pre>
    <Copy text={text} what={what} />
  </div>
)

/** Commands of the CLI that give the same. */
export const Commands = ({ list }: { readonly list: readonly Command[] }) =>
  list.length === 0 ? null : (
    <div class="stack commands">
      {list.map(({ label, command }) => (
        <div key={label}>
          <p class="small muted">{label}</p>
          <CodeBlock text={command} what={`the command: ${label}`} />
        </div>
      ))}
    </div>
  )

export const Toast = () => (
  <div role="status" class={toast.value === '' ? 'hidden' : 'toast'}>
    {toast.value}
  </div>
)
