// A page for tests that cannot be bundled.
import './nowhere.css'
import { readFile } from 'node:fs'

document.title = `${readFile}`
