"""`python -m tflm_forge` is `forge`."""

from tflm_forge.cli import main

if __name__ == "__main__":
    main()
