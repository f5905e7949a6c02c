#pragma once

bool LoadModel(const char* path);
