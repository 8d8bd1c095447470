// An action on one row, after confirmation. The button is missing if actions are off.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import type { ActionResult } from '../../api.ts'
import { post, RequestError } from '../data/request.ts'
import { me } from '../data/session.ts'
import { announce } from './copy.tsx'
import { Confirm } from './dialogs.tsx'

interface ActionProps {
  readonly label: string
  readonly title: string
  readonly children: ComponentChildren
  readonly path: string
  readonly body?: object
  readonly isDanger?: boolean
  /** Also receives a failed result if it lists nodes. */
  readonly onDone: (result: ActionResult) => void
}

export function Action({ label, title, children, path, body = {}, isDanger = false, onDone }: ActionProps) {
  const [isOpen, setOpen] = useState(false)
  async function run() {
    const result = await post<ActionResult>(path, { ...body, confirm: true })
    if (!result.ok && !result.nodes) throw new RequestError(409, result.message)
    announce(result.message)
    onDone(result)
  }
  if (me.value?.actions !== true) return null
  return (
    <>
      <button type="button" class={isDanger ? 'danger' : ''} onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && (
        <Confirm title={title} action={label} isDanger={isDanger} run={run} onClose={() => setOpen(false)}>
          {children}
        </Confirm>
      )}
    </>
  )
}

export const ActionsOff = () =>
  me.value?.actions === true ? null : (
    <p class="small muted">
      Read-only: actions require <code>console: {'{ actions: true }'}</code> in the config.
    </p>
  )
