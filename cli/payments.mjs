#!/usr/bin/env node
import launcher from '../scripts/launch.cjs';

launcher.launch('cli/main.ts', process.argv.slice(2));
