// Modal dialogs: a drawer with details, and the confirmation of an action. `<dialog>` traps and restores the focus.
import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { errorText } from '../data/request.ts'

function useModal() {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const opener = document.activeElement
    dialog.current?.showModal()
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus()
    }
  }, [])
  return dialog
}

interface DrawerProps {
  readonly title: ComponentChildren
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Drawer({ title, onClose, children }: DrawerProps) {
  const dialog = useModal()
  const id = useId()
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: a click on the backdrop closes; Escape and the button do the same by keyboard.
    <dialog
      ref={dialog}
      class="drawer"
      aria-labelledby={id}
      onClose={onClose}
      onClick={event => {
        if (event.target === dialog.current) dialog.current?.close()
      }}
    >
      <header>
        <h2 id={id}>{title}</h2>
        <button type="button" class="icon" aria-label="Close" onClick={() => dialog.current?.close()}>
          ×
        </button>
      </header>
      <div class="stack">{children}</div>
    </dialog>
  )
}

interface ConfirmProps {
  readonly title: string
  readonly children: ComponentChildren
  /** The label of the button that runs the action. */
  readonly action: string
  readonly isDanger?: boolean
  readonly run: () => Promise<void>
  readonly onClose: () => void
}

/** Milliseconds without a click before the action is enabled, because an app can open the dialog during a double click. */
const ENABLE_DELAY = 500

/** Runs an action after confirmation. Stays open and shows the error if the action fails. */
export function Confirm({ title, children, action, isDanger = false, run, onClose }: ConfirmProps) {
  const dialog = useModal()
  const id = useId()
  const [isEnabled, setEnabled] = useState(false)
  const [clicks, setClicks] = useState(0)
  useEffect(() => {
    const timer = setTimeout(() => setEnabled(true), ENABLE_DELAY)
    return () => clearTimeout(timer)
  }, [clicks])
  const [state, setState] = useState<{ readonly isRunning: boolean; readonly error?: string }>({ isRunning: false })
  async function confirm() {
    setState({ isRunning: true })
    try {
      await run()
      dialog.current?.close()
    } catch (error) {
      setState({ isRunning: false, error: errorText(error) })
    }
  }
  return (
    <dialog
      ref={dialog}
      class="confirm"
      aria-labelledby={id}
      onClose={onClose}
      onPointerDown={() => setClicks(count => count + 1)}
    >
      <div class="stack">
        <h2 id={id}>{title}</h2>
        <div>{children}</div>
        {state.error !== undefined && (
          <p class="note fault" role="alert">
            {state.error}
          </p>
        )}
      </div>
      <div class="tools">
        <button type="button" onClick={() => dialog.current?.close()}>
          Cancel
        </button>
        <button
          type="button"
          class={isDanger ? 'danger' : 'main'}
          disabled={state.isRunning || !isEnabled}
          onClick={() => void confirm()}
        >
          {action}
        </button>
      </div>
    </dialog>
  )
}
